package main

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/compare/calls"
)

func TestMeasures(t *testing.T) {
	for _, size := range []string{"8", "1000000"} {
		var out bytes.Buffer
		if err := calls.Main([]string{"echo", "--size", size, "--outstanding", "3", "--seconds", "0.05"}, &out, start); err != nil {
			t.Errorf("%s bytes: %v", size, err)
		}
	}
}
