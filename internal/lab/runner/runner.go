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
	"github.com/byteexpress/byteexpress/internal/testdev/port"
)

const (
	// grace is the time between asking a process for its stacks (SIGQUIT) and
	// killing it, and then for its children to let go of its output. The others of an
	// item have it to end when one has failed, and the device to be as before a suite.
	grace = 3 * time.Second
	// maxLine bounds a record. Longer lines of output come in pieces.
	maxLine = 2048
)

// Runner runs items.
type Runner struct {
	Out    *plan.Writer
	Device string // for "{device}" in arguments
	Env    []string
}

// Run runs one item to its end or its limit. Its records are the only result.
func (r *Runner) Run(ctx context.Context, it plan.Item) {
	start := time.Now()
	r.Out.Send(plan.Record{Kind: plan.Begin, Item: it.Name})
	before, _ := port.Read(r.Device)
	ctx, cancel := context.WithTimeoutCause(ctx, it.Limit, fmt.Errorf("still running after %v", it.Limit))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	for _, p := range it.Procs {
		listening := make(chan struct{})
		wg.Go(func() {
			text, status := r.proc(ctx, it, p, listening)
			if text == "" && status == p.Exit && it.Tests {
				text = r.changed(before)
			}
			if text != "" || status != p.Exit { // the others may wait for this one, and for ever
				time.AfterFunc(grace, func() { fail(fmt.Errorf("ended %v after %s had failed", grace, p.Role)) })
			}
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
	argv, err := r.expand(p.Argv)
	if err != nil {
		return err.Error(), -1
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = p.Dir, r.Env
	output := func(line string) {
		r.Out.Send(plan.Record{Kind: plan.Output, Item: it.Name, Role: p.Role, Text: line})
	}
	cmd.Cancel = func() error {
		for _, line := range append(dump(cmd.Process.Pid), dumpDevice(r.Device)...) {
			output(line)
		}
		return cmd.Process.Signal(syscall.SIGQUIT)
	}
	cmd.WaitDelay = grace
	pr, pw := io.Pipe()
	cmd.Stdout, cmd.Stderr = pw, pw
	var lines sync.WaitGroup
	lines.Go(func() { eachLine(pr, output) })
	err = cmd.Start()
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
		return context.Cause(ctx).Error(), -1
	case errors.Is(err, exec.ErrWaitDelay):
		return "ended, and left a process behind that holds its output", -1
	case cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0:
		return err.Error(), -1
	}
	return "", cmd.ProcessState.ExitCode()
}

// changed says how the device's port is, unless it is as before.
func (r *Runner) changed(before port.Port) string {
	for end := time.Now().Add(grace); ; time.Sleep(20 * time.Millisecond) { // the kernel follows the network a moment later
		after, _ := port.Read(r.Device)
		switch {
		case after.String() == before.String():
			return ""
		case time.Now().After(end):
			return fmt.Sprintf("left %s changed: port 1 is %q; it was %q", r.Device, after, before)
		}
	}
}

func (r *Runner) expand(argv []string) ([]string, error) {
	var gid port.GID
	if text := strings.Join(argv, " "); strings.Contains(text, "{gid}") || strings.Contains(text, "{addr}") {
		var err error
		if gid, err = port.IPv4GID(r.Device); err != nil {
			return nil, err
		}
	}
	rep := strings.NewReplacer("{device}", r.Device, "{gid}", strconv.Itoa(gid.Index), "{addr}", gid.Addr.String())
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = rep.Replace(a)
	}
	return out, nil
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
