package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrim(t *testing.T) {
	got := trim([]string{
		"test: === RUN   TestGood",
		"test:     good_test.go:1: said by a good test",
		"test: --- PASS: TestGood (0.01s)",
		"test: === RUN   TestBad",
		"test: === RUN   TestBad/good",
		"test:     --- PASS: TestBad/good (0.00s)",
		"test: === NAME  TestBad",
		"test:     bad_test.go:1: why",
		"test: --- FAIL: TestBad (0.00s)",
		"test: === NAME  ",
		"test: === RUN   TestHangs",
		"client: --- PASS: not of a test",
	})
	want := []string{
		"test:     good_test.go:1: said by a good test",
		"test: === RUN   TestBad",
		"test: === NAME  TestBad",
		"test:     bad_test.go:1: why",
		"test: --- FAIL: TestBad (0.00s)",
		"test: === RUN   TestHangs",
		"client: --- PASS: not of a test",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
