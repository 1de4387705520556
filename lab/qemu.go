package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/pkg/errors"
)

// bootArgs are the kernel's. A kernel that stumbles (oops) or stops answering (a
// processor in the kernel for 20 s, a soft lockup) must panic, and a panic must end
// the machine: it is then known what went wrong, and the lab goes on.
const bootArgs = "quiet panic=-1 oops=panic softlockup_panic=1 mitigations=off"

// boot runs a virtual machine until it powers off or ctx ends. The kernel's console
// is its first serial port, the report its second: a kernel message can then not
// break a record. The two functions get each line, and run on goroutines of their own.
func boot(ctx context.Context, m machine, accel string, k unpacked, initrd string, onConsole, onReport func(line []byte)) error {
	reportOut, reportIn, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reportOut.Close()
	args := append([]string{
		"-accel", accel, "-smp", "2", "-m", "2048",
		"-display", "none", "-monitor", "none", "-no-reboot", "-nic", "none",
		"-serial", "stdio",
		"-kernel", k.image, "-initrd", initrd,
		"-append", "console=" + m.console + " " + bootArgs + m.clock,
	}, m.flags...)
	cmd := exec.CommandContext(ctx, m.qemu.program, append(args, m.second...)...)
	cmd.ExtraFiles = []*os.File{reportIn}
	cmd.WaitDelay = 5 * time.Second
	consoleOut, consoleIn := io.Pipe()
	cmd.Stdout, cmd.Stderr = consoleIn, consoleIn
	dieWithUs(cmd)
	// The kernel takes the end of the thread that started the child for the parent's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	reportIn.Close()
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	var readers sync.WaitGroup
	readers.Go(func() { eachLine(consoleOut, onConsole) })
	readers.Go(func() { eachLine(reportOut, onReport) })
	err = cmd.Wait()
	consoleIn.Close()
	readers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Wrap(err, m.qemu.program)
}

// eachLine calls f for each line, complete or not, without its end.
func eachLine(r io.Reader, f func(line []byte)) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	io.Copy(io.Discard, r)
}
