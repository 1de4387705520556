//go:build linux

// Guestinit is the first and only program of the kernel lab's guest (see package
// lab). It loads the plan's kernel modules, makes an rxe device on a dummy network
// interface, runs the plan's items, reports on the plan's serial port and powers off.
// It runs on Linux only, as process 1.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
	"github.com/byteexpress/byteexpress/internal/lab/runner"
	"github.com/byteexpress/byteexpress/internal/testdev"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guestinit: runs only as process 1 of the kernel lab's guest: use `go run ./lab`")
		os.Exit(2)
	}
	if err := run(); err != nil {
		// The host also shows the console when no report arrives.
		fmt.Printf("guestinit: %v\n%s\n", err, kernelLog())
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Printf("guestinit: power off: %v\n", err)
	}
	select {}
}

func run() error {
	if err := mountAll(); err != nil {
		return err
	}
	var p plan.Plan
	text, err := os.ReadFile(plan.Path)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return errors.Wrap(err, "plan")
	}
	port, err := openSerial(p.Report)
	if err != nil {
		return err
	}
	defer drain(port)
	out := plan.NewWriter(port, p.Nonce)
	if err := out.Send(plan.Record{Kind: plan.Boot, Text: kernelVersion()}); err != nil {
		return errors.Wrap(err, p.Report)
	}
	if err := work(p, out); err != nil {
		out.Send(plan.Record{Kind: plan.Note, Text: kernelLog()})
		out.Send(plan.Record{Kind: plan.Broken, Text: err.Error()})
	}
	return nil
}

func work(p plan.Plan, out *plan.Writer) error {
	if err := limits(); err != nil {
		return err
	}
	for _, m := range p.Modules {
		if err := load(m); err != nil {
			return err
		}
	}
	gid, err := addDevice(p.Device)
	if err != nil {
		return err
	}
	if err := environment(p.Device); err != nil {
		return err
	}
	out.Send(plan.Record{Kind: plan.Ready, Text: fmt.Sprintf("%s, GID index %d", p.Device, gid.Index)})
	r := runner.Runner{Out: out, Device: p.Device, Env: os.Environ()}
	for _, it := range p.Items {
		r.Run(context.Background(), it)
		killAll()
	}
	if t := tainted(); t != "0" {
		out.Send(plan.Record{Kind: plan.Note, Text: "the kernel is tainted (" + t + "):\n" + kernelLog()})
	}
	return out.Send(plan.Record{Kind: plan.Done})
}

// environment sets what the items' processes inherit.
func environment(device string) error {
	for k, v := range map[string]string{
		"PATH": "/bin:/usr/bin:/sbin:/usr/sbin", "HOME": "/root", "TMPDIR": "/tmp", testdev.Env: device,
	} {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	return nil
}
