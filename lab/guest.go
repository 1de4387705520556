package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/internal/lab/kmod"
	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// guestDevice is the RDMA device that the guest makes.
const guestDevice = "rxe0"

// runGuest runs the options' items in a virtual machine for each of the kernels.
func runGuest(ctx context.Context, o options) error {
	dir, err := newScratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := lab{dir: dir, options: o, built: map[string]programs{}}
	if o.image != "" {
		return l.run(ctx, kernel{name: "KERNEL", machine: amd64}, unpacked{o.image, o.modules})
	}
	failed := false
	for _, k := range o.kernels {
		u, err := k.find(ctx, o)
		if err != nil && k.optional && ctx.Err() == nil {
			if err := skipped(k.kernel, err, o.json); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = l.run(ctx, k.kernel, u)
		}
		switch {
		case err == nil:
			fmt.Printf("lab: kernel %s: ok\n", k.name)
		case len(o.kernels) == 1:
			return err
		default: // the others may be good
			fmt.Printf("FAIL  kernel %s: %v\n", k.name, err)
			failed = true
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if failed {
		return errFailed
	}
	return nil
}

// lab is one call of this program.
type lab struct {
	options
	dir   string              // removed at the end
	built map[string]programs // by architecture
}

// programs is what of ours runs in a guest.
type programs struct {
	init     binary
	commands []binary
	suites   []binary
}

// run runs the options' items on one kernel.
func (l *lab) run(ctx context.Context, k kernel, u unpacked) error {
	if err := need(ctx, []tool{k.machine.qemu, {"xz", "xz-utils"}, {"zstd", "zstd"}}); err != nil {
		return err
	}
	o := l.options
	o.limit *= time.Duration(k.machine.slow)
	o.total *= time.Duration(k.machine.slow)
	m, err := l.image(ctx, k.machine, u, o)
	if err != nil {
		return err
	}
	initrd := filepath.Join(l.dir, "initramfs")
	if err := m.write(initrd); err != nil {
		return errors.Wrap(err, "initramfs")
	}
	defer os.Remove(initrd)
	fmt.Printf("lab: kernel %s: booting %s\n", k.name, filepath.Base(u.image))
	ctx, cancel := context.WithTimeoutCause(ctx, o.total, errors.Errorf("the whole run took more than %v: see -timeout", o.total))
	defer cancel()
	v := newView(m.plan, k, o)
	err = v.watch(ctx, o.limit+silence, func(ctx context.Context) error {
		m := k.machine
		if !o.compare {
			m.clock = ""
		}
		return boot(ctx, m, o.accel, u, initrd, v.console, v.report)
	})
	return v.finish(err)
}

// image builds what goes into the guest.
func (l *lab) image(ctx context.Context, on machine, u unpacked, o options) (m image, err error) {
	if m.modules, err = kmod.Order(u.modules, wanted); err != nil {
		return m, err
	}
	system, err := peersFor(ctx, on, o.cache)
	if err != nil {
		return m, err
	}
	if m.peers, err = system.files(); err != nil {
		return m, err
	}
	m.links = system.links()
	if m.programs, err = l.build(ctx, on.arch); err != nil {
		return m, err
	}
	m.plan = plan.Plan{Nonce: rand.Text(), Device: guestDevice, Report: on.report}
	for _, mod := range m.modules {
		m.plan.Modules = append(m.plan.Modules, modulePath(mod))
	}
	for _, s := range m.suites {
		m.plan.Items = append(m.plan.Items, suiteItem(s, suiteFile(s), suiteDir(s.name), o))
	}
	for _, s := range o.scenarios {
		m.plan.Items = append(m.plan.Items, scenarioItem(s, o, guestDevice))
	}
	return m, nil
}

// build builds the programs for an architecture, once.
func (l *lab) build(ctx context.Context, arch string) (p programs, err error) {
	if p, ok := l.built[arch]; ok {
		return p, nil
	}
	suites := l.suites
	if arch != runtime.GOARCH && l.all {
		suites = append(slices.Clone(suites), plainSuites...)
	}
	dir := filepath.Join(l.dir, arch)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return p, err
	}
	if p.init, err = buildProgram(ctx, dir, arch, "./lab/guestinit"); err != nil {
		return p, err
	}
	if p.commands, err = buildPrograms(ctx, dir, arch); err != nil {
		return p, err
	}
	if p.suites, err = buildSuites(ctx, dir, arch, suites); err != nil {
		return p, err
	}
	l.built[arch] = p
	return p, nil
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
