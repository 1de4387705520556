package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// grace is how long a run may take to end in good order after an interrupt.
const grace = 3 * time.Second

// env is what a command runs in.
type env struct {
	soft   context.Context // ends at an interrupt: begin nothing more
	hard   context.Context // ends some time later: give up
	stdout io.Writer
	stderr io.Writer
}

// run runs the command line and gives the exit status. The end of ctx is an
// interrupt.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	hard, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-hard.Done():
		case <-time.After(grace):
			giveUp(control.ErrInterrupted)
		}
	})
	defer stop()
	out := &checkedWriter{w: stdout}
	e := &env{soft: ctx, hard: hard, stdout: out, stderr: stderr}
	root := newRoot(e)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = errors.Wrap(out.err, "standard output")
	}
	if err != nil {
		fmt.Fprintf(stderr, "bebench: %v\n", err)
	}
	return exit.Code(err)
}

// checkedWriter remembers that a write failed, for those who do not look.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}
