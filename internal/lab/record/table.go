package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/byteexpress/byteexpress/internal/testdev"
)

// Markdown makes the table: a row for each verb, a column for each run, and the reasons
// as notes below it.
func Markdown(runs []Run) string {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, compareRuns)
	verbs := map[string]bool{}
	for _, r := range runs {
		for v := range r.Verbs {
			verbs[v] = true
		}
	}
	var b strings.Builder
	b.WriteString("| verb |")
	for _, r := range runs {
		fmt.Fprintf(&b, " %s, %s on %s |", r.Device, strings.TrimSuffix(r.Kernel, "-"+r.Arch), r.Arch)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(runs)) + "\n")
	var notes []string
	for _, v := range slices.Sorted(maps.Keys(verbs)) {
		b.WriteString("| " + v + " |")
		for _, r := range runs {
			b.WriteString(" " + cell(r, v, &notes) + " |")
		}
		b.WriteString("\n")
	}
	for i, n := range notes {
		fmt.Fprintf(&b, "\n%d. %s", i+1, n)
	}
	if len(notes) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// compareRuns orders columns by device, architecture and kernel.
func compareRuns(a, b Run) int {
	if c := strings.Compare(a.Device, b.Device); c != 0 {
		return c
	}
	if c := strings.Compare(a.Arch, b.Arch); c != 0 {
		return c
	}
	return testdev.CompareReleases(a.Kernel, b.Kernel)
}

// cell is the outcome with the numbers of its notes, which it adds to them. The kernel
// is that of the column: a note that names it is one for all.
func cell(r Run, verb string, notes *[]string) string {
	v := r.Verbs[verb]
	if v.Outcome == "" {
		return "not tested"
	}
	var numbers []string
	for _, why := range v.But {
		why = strings.ReplaceAll(why, "kernel "+r.Kernel, "this kernel")
		i := slices.Index(*notes, why)
		if i < 0 {
			i = len(*notes)
			*notes = append(*notes, why)
		}
		numbers = append(numbers, fmt.Sprint(i+1))
	}
	if len(numbers) == 0 {
		return string(v.Outcome)
	}
	return fmt.Sprintf("%s (%s)", v.Outcome, strings.Join(numbers, ", "))
}
