//go:build linux

package kdevtest

import (
	"reflect"
	"testing"
)

// fewest is a number of tests that there surely are: fewer, and they were not found.
const fewest = 50

// Run runs all tests on the rig's device, each as a subtest: all its methods that take
// a *testing.T.
func Run(t *testing.T, r *Rig) {
	rig, tests := reflect.ValueOf(r), 0
	for i := range rig.NumMethod() {
		if run, ok := rig.Method(i).Interface().(func(*testing.T)); ok {
			t.Run(rig.Type().Method(i).Name, run)
			tests++
		}
	}
	if tests < fewest {
		t.Errorf("only %d tests were found", tests)
	}
}
