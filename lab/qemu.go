package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/pkg/errors"
)

const qemu = "qemu-system-x86_64"

// reportPort is the guest's name of the serial port whose output boot gives to
// onReport.
const reportPort = "/dev/ttyS1"

// boot runs a virtual machine until it powers off or ctx ends. The kernel's console
// is its first serial port, the report its second: a kernel message can then not
// break a record. The two functions get each line, and run on goroutines of their own.
func boot(ctx context.Context, o options, k unpacked, initrd string, onConsole, onReport func(line []byte)) error {
	reportOut, reportIn, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reportOut.Close()
	cmd := exec.CommandContext(ctx, qemu,
		"-cpu", "max", "-accel", o.accel, "-smp", "2", "-m", "2048",
		"-display", "none", "-monitor", "none", "-no-reboot", "-nic", "none",
		"-serial", "stdio", "-serial", "file:/dev/fd/3", // 3 is the first of ExtraFiles
		"-kernel", k.image, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1 oops=panic mitigations=off")
	cmd.ExtraFiles = []*os.File{reportIn}
	cmd.WaitDelay = 5 * time.Second
	consoleOut, consoleIn := io.Pipe()
	cmd.Stdout, cmd.Stderr = consoleIn, consoleIn
	err = cmd.Start()
	reportIn.Close()
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
	return errors.Wrap(err, qemu)
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
