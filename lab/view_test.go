package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

func TestVerdict(t *testing.T) {
	p := plan.Plan{Nonce: "N", Items: []plan.Item{{Name: "it", Procs: []plan.Proc{{Role: "p"}}}}}
	good := []plan.Record{
		{Kind: plan.Boot}, {Kind: plan.Ready}, {Kind: plan.Begin, Item: "it"},
		{Kind: plan.Exit, Item: "it", Role: "p"}, {Kind: plan.End, Item: "it"}, {Kind: plan.Done},
	}
	for _, tc := range []struct {
		desc    string
		records []plan.Record
		ended   error
		want    error
	}{
		{"good", good, nil, nil},
		{"machine failed", good, errors.New("qemu: exit status 1"), errFailed},
		{"cut off", good[:5], nil, errFailed},
		{"item cut off", append(good[:3:3], good[5]), nil, errFailed},
		{"nothing", nil, nil, errFailed},
	} {
		var buf bytes.Buffer
		w := plan.NewWriter(&buf, p.Nonce)
		for _, r := range tc.records {
			w.Send(r)
		}
		v := newView(p, kernel{}, options{})
		v.console([]byte("[    0.1] last words\r"))
		eachLine(&buf, v.report)
		if err := v.finish(tc.ended); err != tc.want {
			t.Errorf("%s: %v, want %v", tc.desc, err, tc.want)
		}
	}
}

// What a kernel says in distress is among the problems of a run, its warnings are not.
func TestDeath(t *testing.T) {
	for line, want := range map[string]bool{
		"[   76.2] watchdog: BUG: soft lockup - CPU#0 stuck for 23s! [suite.test:177]": true,
		"[   76.3] Kernel panic - not syncing: softlockup: hung tasks":                 true,
		"[   10.1] BUG: kernel NULL pointer dereference, address: 0000000000000008":    true,
		"[   10.1] Unable to handle kernel paging request at virtual address dead":     true,
		"[  242.7] INFO: task suite.test:177 blocked for more than 120 seconds.":       true,
		"[    1.2] rdma_rxe: loaded":                     false,
		"[    1.2] WARNING: CPU: 0 PID: 1 at kernel/x.c": false,
		"[    1.2] DEBUG: all is well":                   false,
	} {
		v := newView(plan.Plan{}, kernel{}, options{})
		v.console([]byte(line + "\r"))
		v.console([]byte("[   99.9] Kernel panic - not syncing: later"))
		if got := v.died == line; got != want {
			t.Errorf("%q: taken for the kernel's end: %t", line, got)
		}
	}
}

// A guest that says nothing any more is ended, and each line gives it more time.
func TestSilence(t *testing.T) {
	v := newView(plan.Plan{}, kernel{}, options{})
	err := v.watch(t.Context(), 20*time.Millisecond, func(ctx context.Context) error {
		v.report([]byte("a line"))
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "the guest hangs: it has said nothing for 20ms") {
		t.Errorf("error %v, want the silence", err)
	}
	err = v.watch(t.Context(), time.Hour, func(ctx context.Context) error { return ctx.Err() })
	if err != nil {
		t.Errorf("error %v of a machine that ended by itself", err)
	}
}
