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
		{Name: "./p", Passed: []string{"TestA"}, Skipped: []string{"TestB"}},
		{Name: "./q", Passed: []string{"TestC"}, Problems: []string{"TestD failed"}},
		{Name: "peer"},
	} {
		if err := writeEvents(&out, r); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"Action":"pass","Package":"lab: ./p","Test":"TestA"}
{"Action":"skip","Package":"lab: ./p","Test":"TestB"}
{"Action":"pass","Package":"lab: ./q","Test":"TestC"}
{"Action":"fail","Package":"lab: ./q","Test":"TestD failed"}
{"Action":"pass","Package":"lab: peer","Test":"scenario"}
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
