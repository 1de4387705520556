package house

import (
	"regexp"
	"slices"
	"strings"
)

// foreign lists what the text of the project does not speak of. The patterns are
// written so that they do not match themselves.
var foreign = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(^|[^\w.])/(w[o]rk|h[o]me|r[o]ot|U[s]ers)/`), "a path of one machine"},
	{regexp.MustCompile(`(^|[^\w.])/t[m]p/`), "a path of one machine: use a temporary directory"},
	{regexp.MustCompile(`pr[o]xy\.golang\.org|s[u]m\.golang\.org|pypi\.[o]rg`), "a registry host"},
	{regexp.MustCompile(`(?i)\bi[s]sue #?\d|\bthe l[e]ad (dev|eng|sess|wro|com)|\bh[e]lper sess|\bthis s[e]ssion\b`), "how the work is organised"},
	{regexp.MustCompile(`\b(T[O]DO|F[I]XME|X[X]X)\b`), "unfinished work: finish it, or say in words what is not there"},
}

// CheckWords looks for words that do not belong into any text file: paths of one
// machine, registry hosts, the organisation of the work. License texts and this
// package's own test data are left out.
func CheckWords(t *Tree) (vs []Violation) {
	var paths []string
	for p := range t.Text {
		if p != "LICENSE" && !strings.HasPrefix(p, "internal/house/testdata/") {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		n := 0
		for line := range strings.Lines(t.Text[p]) {
			n++
			for _, f := range foreign {
				if m := f.pattern.FindString(line); m != "" {
					vs = append(vs, Violation{Path: p, Line: n, Rule: "words", Text: strings.TrimSpace(m) + ": " + f.why})
				}
			}
		}
	}
	return vs
}
