package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/internal/lab/kmod"
	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// guestDevice is the RDMA device that the guest makes.
const guestDevice = "rxe0"

// guestTools are what the host needs to run a guest.
var guestTools = []tool{
	{qemu, "qemu-system-x86"},
	{"xz", "xz-utils"},
	{"zstd", "zstd"},
	{rxeDriver, "ibverbs-providers"},
}

// runGuest runs the options' items in a virtual machine.
func runGuest(ctx context.Context, o options) error {
	if err := need(ctx, append(guestTools, peers...)); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "byteexpress-lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	k, err := findKernel(ctx, o)
	if err != nil {
		return err
	}
	m, err := buildImage(ctx, dir, k, o)
	if err != nil {
		return err
	}
	initrd := filepath.Join(dir, "initramfs")
	if err := m.write(initrd); err != nil {
		return errors.Wrap(err, "initramfs")
	}
	fmt.Printf("lab: booting %s\n", filepath.Base(k.image))
	ctx, cancel := context.WithTimeoutCause(ctx, o.total, errors.Errorf("the whole run took more than %v: see -timeout", o.total))
	defer cancel()
	v := newView(m.plan, o)
	err = boot(ctx, o, k, initrd, v.console, v.report)
	return v.finish(err)
}

// buildImage builds what goes into the guest.
func buildImage(ctx context.Context, dir string, k unpacked, o options) (m image, err error) {
	const goarch = "amd64"
	if m.modules, err = kmod.Order(k.modules, wanted); err != nil {
		return m, err
	}
	if m.peers, err = peerFiles(); err != nil {
		return m, err
	}
	m.links = libLinks()
	if m.init, err = buildProgram(ctx, dir, goarch, "./lab/guestinit"); err != nil {
		return m, err
	}
	if m.programs, err = buildPrograms(ctx, dir, goarch); err != nil {
		return m, err
	}
	if m.suites, err = buildSuites(ctx, dir, goarch, o.suites); err != nil {
		return m, err
	}
	m.plan = plan.Plan{Nonce: rand.Text(), Device: guestDevice, Report: reportPort}
	for _, mod := range m.modules {
		m.plan.Modules = append(m.plan.Modules, modulePath(mod))
	}
	for _, s := range m.suites {
		m.plan.Items = append(m.plan.Items, suiteItem(s, suiteFile(s), suiteDir(s), o))
	}
	for _, s := range o.scenarios {
		m.plan.Items = append(m.plan.Items, scenarioItem(s, o, guestDevice))
	}
	return m, nil
}

// buildPrograms builds the module's commands that scenarios run.
func buildPrograms(ctx context.Context, dir, goarch string) ([]binary, error) {
	var out []binary
	for _, pkg := range commands {
		b, err := buildProgram(ctx, dir, goarch, pkg)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// cacheDir is where kernels are kept.
func cacheDir() (string, error) {
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	return filepath.Abs(filepath.Join(".cache", "lab"))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
