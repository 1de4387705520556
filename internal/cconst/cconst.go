// Package cconst compares Go constants with those that a C compiler found in the
// headers of the kernel and of libibverbs.
package cconst

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Load reads a table of lines "NAME<tab>value".
func Load(file string) (map[string]uint64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	table := map[string]uint64{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}
		table[name] = v
	}
	return table, nil
}

// Diff tells how got differs from the table want: values that are not equal, and
// names that only one of them has.
func Diff(got, want map[string]uint64) (diffs []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch v, ok := got[name]; {
		case !ok:
			diffs = append(diffs, name+": no Go constant was compared with it")
		case v != want[name]:
			diffs = append(diffs, fmt.Sprintf("%s is %#x in C, %#x in Go", name, want[name], v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			diffs = append(diffs, name+": not in the table of C constants")
		}
	}
	return diffs
}
