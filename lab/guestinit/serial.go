//go:build linux

package main

import (
	"os"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// openSerial opens a serial port for raw output: the terminal layer must not turn
// line ends into others.
func openSerial(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		t.Oflag &^= unix.OPOST
		t.Lflag &^= unix.ECHO | unix.ICANON
		err = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		f.Close()
		return nil, errors.Wrap(err, name)
	}
	return f, nil
}

// drain waits until all that was written has left the machine.
func drain(f *os.File) {
	// TCSBRK with a non-zero argument is tcdrain (ioctl_tty(2)).
	unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1)
	f.Close()
}
