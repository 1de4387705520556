package house

import (
	"path"
	"strconv"
	"strings"
)

// CheckImports holds the import table: every package has a row, and imports only
// what its row allows. Files of package x_test may import whatever they need, other
// tests also lower floors, and the test support in internal.
func CheckImports(t *Tree, table Table) (vs []Violation) {
	unknown := map[string]bool{}
	for _, f := range t.Go {
		if f.External {
			continue
		}
		row := table.find(f.Dir)
		if row == nil {
			if !unknown[f.Dir] {
				vs = append(vs, Violation{Path: f.Dir, Rule: "imports", Text: "package is not in the import table of ARCHITECTURE.md"})
			}
			unknown[f.Dir] = true
			continue
		}
		for _, spec := range f.Syntax.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			pkg, ours := strings.CutPrefix(p, t.Module+"/")
			if !ours || f.Test && strings.HasPrefix(pkg, "internal/") {
				continue
			}
			to := table.find(pkg)
			if to == nil || !row.allows(to, pkg) && !(f.Test && to.Floor < row.Floor) {
				vs = append(vs, t.at(spec.Pos(), "imports", "%s may not import %s (ARCHITECTURE.md)", f.Dir, pkg))
			}
		}
	}
	return vs
}

// LibraryImports lists what library code may import of others: trees of import
// paths.
var LibraryImports = []string{"golang.org/x/sys", "github.com/pkg/errors"}

// CheckDependencies holds the library's third-party imports to LibraryImports.
// Commands (cmd, lab, anything internal, package main) and tests may import more.
func CheckDependencies(t *Tree) (vs []Violation) {
	for _, f := range t.Go {
		if f.Test || !library(f) {
			continue
		}
	next:
		for _, spec := range f.Syntax.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			first, _, _ := strings.Cut(p, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(p, t.Module+"/") {
				continue
			}
			for _, ok := range LibraryImports {
				if matches(ok+"/...", p) {
					continue next
				}
			}
			vs = append(vs, t.at(spec.Pos(), "dependencies", "a library package may not import %s", p))
		}
	}
	return vs
}

// library reports whether the file is of a package for others to import.
func library(f *File) bool {
	first, _, _ := strings.Cut(f.Dir, "/")
	return !f.Main() && first != "cmd" && first != "lab" && !internal(f.Dir)
}

func internal(dir string) bool { return strings.Contains("/"+dir+"/", "/internal/") }

// CheckLayout refuses packages and files whose name says nothing.
func CheckLayout(t *Tree) (vs []Violation) {
	empty := func(name string) bool {
		switch strings.TrimSuffix(name, "s") {
		case "util", "common", "helper", "misc":
			return true
		}
		return false
	}
	seen := map[string]bool{}
	for _, f := range t.Go {
		if empty(path.Base(f.Dir)) && !seen[f.Dir] {
			vs = append(vs, Violation{Path: f.Dir, Rule: "layout", Text: "name the package for what it does"})
		}
		seen[f.Dir] = true
		base := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Path), ".go"), "_test")
		if empty(base) {
			vs = append(vs, Violation{Path: f.Path, Rule: "layout", Text: "name the file for its concept"})
		}
	}
	return vs
}
