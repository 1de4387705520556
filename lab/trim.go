package main

import (
	"slices"
	"strings"
)

// trim leaves out of a suite's output what its good tests say by themselves: the
// testing package's lines about them, so that the bad ones are easy to find.
func trim(output []string) []string {
	passed := map[string]bool{}
	name := func(line, prefix string) string {
		_, rest, _ := strings.Cut(line, prefix)
		test, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		return test
	}
	for _, l := range output {
		if strings.Contains(l, "--- PASS: ") {
			passed[name(l, "--- PASS: ")] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(output), func(l string) bool {
		for _, prefix := range []string{"=== RUN ", "=== NAME ", "=== CONT ", "=== PAUSE ", "--- PASS: "} {
			if strings.HasPrefix(l, "test: ") && strings.Contains(l, prefix) {
				test := name(l, prefix)
				return test == "" || passed[test]
			}
		}
		return false
	})
}
