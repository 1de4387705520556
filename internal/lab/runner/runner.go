// Package runner runs the items of a lab plan and reports what they did. It decides
// nothing: package judge does, from the reports. The guest runs it on the virtual
// machine's device, and the host when it has a device of its own.
package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

const (
	// grace is the time between asking a process for its stacks (SIGQUIT) and
	// killing it, and then for its children to let go of its output.
	grace = 3 * time.Second
	// maxLine bounds a record. Longer lines of output come in pieces.
	maxLine = 2048
)

// Runner runs items.
type Runner struct {
	Out    *plan.Writer
	Device string // for "{device}" in arguments
	GID    int    // for "{gid}" in arguments
	Env    []string
}

// Run runs one item to its end or its limit. Its records are the only result.
func (r *Runner) Run(ctx context.Context, it plan.Item) {
	start := time.Now()
	r.Out.Send(plan.Record{Kind: plan.Begin, Item: it.Name})
	ctx, cancel := context.WithTimeout(ctx, it.Limit)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range it.Procs {
		listening := make(chan struct{})
		wg.Go(func() {
			text, status := r.proc(ctx, it, p, listening)
			r.Out.Send(plan.Record{Kind: plan.Exit, Item: it.Name, Role: p.Role, Status: status, Text: text})
		})
		<-listening
	}
	wg.Wait()
	r.Out.Send(plan.Record{Kind: plan.End, Item: it.Name, Millis: time.Since(start).Milliseconds()})
}

// proc runs one process. It closes listening when the next one may start.
func (r *Runner) proc(ctx context.Context, it plan.Item, p plan.Proc, listening chan struct{}) (text string, status int) {
	next := sync.OnceFunc(func() { close(listening) })
	defer next()
	argv := r.expand(p.Argv)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = p.Dir, r.Env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = grace
	pr, pw := io.Pipe()
	cmd.Stdout, cmd.Stderr = pw, pw
	var lines sync.WaitGroup
	lines.Go(func() {
		eachLine(pr, func(line string) {
			r.Out.Send(plan.Record{Kind: plan.Output, Item: it.Name, Role: p.Role, Text: line})
		})
	})
	err := cmd.Start()
	if err == nil {
		exited := make(chan struct{})
		var wait sync.WaitGroup
		wait.Go(func() {
			awaitListen(ctx, p.Port, exited)
			next()
		})
		err = cmd.Wait()
		close(exited)
		wait.Wait()
	}
	pw.Close()
	lines.Wait()
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("still running after %v", it.Limit), -1
	case errors.Is(err, exec.ErrWaitDelay):
		return "ended, and left a process behind that holds its output", -1
	case cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0:
		return err.Error(), -1
	}
	return "", cmd.ProcessState.ExitCode()
}

func (r *Runner) expand(argv []string) []string {
	rep := strings.NewReplacer("{device}", r.Device, "{gid}", strconv.Itoa(r.GID), "{addr}", gidAddr(r.Device, r.GID))
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = rep.Replace(a)
	}
	return out
}

// eachLine calls f for each line without its end, and for each piece of one longer
// than maxLine.
func eachLine(r io.Reader, f func(string)) {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			f(strings.TrimRight(string(line), "\r\n"))
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}
