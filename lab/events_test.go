package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/byteexpress/byteexpress/internal/lab/judge"
)

func TestWriteEvents(t *testing.T) {
	var out bytes.Buffer
	for _, r := range []judge.Result{
		{Name: "p", Passed: []string{"TestA"}, Skipped: []judge.Skip{{Test: "TestB", Log: []string{"    b_test.go:1: no huge pages"}}}},
		{Name: "q", Passed: []string{"TestC"}, Problems: []string{"TestD failed"}},
		{Name: "peer"},
	} {
		if err := writeEvents(&out, "5.10", r); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"Action":"pass","Package":"github.com/byteexpress/byteexpress/p","Test":"TestA"}
{"Action":"output","Package":"github.com/byteexpress/byteexpress/p","Test":"TestB","Output":"    b_test.go:1: no huge pages\n"}
{"Action":"skip","Package":"github.com/byteexpress/byteexpress/p","Test":"TestB"}
{"Action":"pass","Package":"github.com/byteexpress/byteexpress/q","Test":"TestC"}
{"Action":"fail","Package":"github.com/byteexpress/byteexpress/q","Test":"q on kernel 5.10: TestD failed"}
{"Action":"pass","Package":"lab","Test":"peer"}
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
