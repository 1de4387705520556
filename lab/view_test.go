package main

import (
	"bytes"
	"errors"
	"testing"

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
		v := newView(p, options{})
		v.console([]byte("[    0.1] last words\r"))
		eachLine(&buf, v.report)
		if err := v.finish(tc.ended); err != tc.want {
			t.Errorf("%s: %v, want %v", tc.desc, err, tc.want)
		}
	}
}
