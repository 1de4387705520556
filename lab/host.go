package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
	"github.com/byteexpress/byteexpress/internal/lab/runner"
	"github.com/byteexpress/byteexpress/internal/testdev/port"
)

// runHost runs the options' items on an RDMA device of this host.
func runHost(ctx context.Context, o options) error {
	gid, err := port.IPv4GID(o.device)
	if err != nil {
		return err
	}
	if err := need(ctx, peersOf(o.scenarios)); err != nil {
		return err
	}
	dir, err := newScratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := buildPrograms(ctx, dir, runtime.GOARCH); err != nil {
		return err
	}
	built, err := buildSuites(ctx, dir, runtime.GOARCH, o.suites)
	if err != nil {
		return err
	}
	p := plan.Plan{Nonce: rand.Text(), Device: o.device}
	for _, s := range built {
		p.Items = append(p.Items, suiteItem(s, s.file, filepath.Dir(s.testdata), o))
	}
	for _, s := range o.scenarios {
		p.Items = append(p.Items, scenarioItem(s, o, o.device))
	}
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return err
	}
	v := newView(p, kernel{}, o)
	runPlan(ctx, p, gid.Index, v)
	return v.finish(ctx.Err())
}

// runPlan does on this host what the guest's init does in the guest.
func runPlan(ctx context.Context, p plan.Plan, gid int, v *view) {
	pr, pw := io.Pipe()
	go func() {
		defer pw.Close()
		out := plan.NewWriter(pw, p.Nonce)
		out.Send(plan.Record{Kind: plan.Boot, Text: "this host"})
		out.Send(plan.Record{Kind: plan.Ready, Text: fmt.Sprintf("%s, GID index %d", p.Device, gid)})
		r := runner.Runner{Out: out, Device: p.Device, Env: os.Environ()}
		for _, it := range p.Items {
			r.Run(ctx, it)
		}
		out.Send(plan.Record{Kind: plan.Done})
	}()
	eachLine(pr, v.report)
}
