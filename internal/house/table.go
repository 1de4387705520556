package house

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Row is one row of the import table: some packages and what they may import.
type Row struct {
	Floor    int
	Packages []string // "be", or "sim/..." for a tree
	Imports  []string // in the same form
	All      bool     // may import everything of lower floors
}

// Table is the import table of ARCHITECTURE.md.
type Table []Row

var quoted = regexp.MustCompile("`([^`]+)`")

func names(cell string) (list []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// rows gives the cells of the first table in a Markdown text whose first header
// is head.
func rows(markdown, head string) (table [][]string) {
	in := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if in {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !in && cells[0] == head:
			in = true
		case in && strings.Trim(cells[0], "-: ") != "":
			table = append(table, cells)
		}
	}
	return table
}

// ParseTable reads the import table out of a Markdown text: the table whose
// first column is "floor", with the packages in the second and the imports in
// the fourth, each in backquotes; "-" is none, "all" is all of lower floors. It
// refuses a row that lets a package import upward.
func ParseTable(markdown string) (Table, error) {
	var t Table
	for _, cells := range rows(markdown, "floor") {
		if len(cells) != 4 {
			return nil, fmt.Errorf("import table: row %q has %d cells, want 4", cells, len(cells))
		}
		floor, err := strconv.Atoi(cells[0])
		if err != nil {
			return nil, fmt.Errorf("import table: floor %q: %w", cells[0], err)
		}
		r := Row{Floor: floor, Packages: names(cells[1]), Imports: names(cells[3]), All: cells[3] == "all"}
		if len(r.Packages) == 0 {
			return nil, fmt.Errorf("import table: row %q names no package", cells)
		}
		t = append(t, r)
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("no import table")
	}
	for _, r := range t {
		for _, imp := range r.Imports {
			to := t.named(imp)
			if to == nil || to.Floor > r.Floor {
				return nil, fmt.Errorf("import table: %v on floor %d may not import %s: it is higher, or in no row", r.Packages, r.Floor, imp)
			}
		}
	}
	return t, nil
}

// named finds the row that has exactly this entry.
func (t Table) named(entry string) *Row {
	for i := range t {
		for _, p := range t[i].Packages {
			if p == entry {
				return &t[i]
			}
		}
	}
	return nil
}

// find gives the row of a package: that of its own name, else that of the
// longest tree it lies in.
func (t Table) find(pkg string) *Row {
	var best *Row
	length := -1
	for i := range t {
		for _, p := range t[i].Packages {
			if p == pkg {
				return &t[i]
			}
			if matches(p, pkg) && len(p) > length {
				best, length = &t[i], len(p)
			}
		}
	}
	return best
}

// matches reports whether an entry ("be", "sim/...") covers a package.
func matches(entry, pkg string) bool {
	if tree, ok := strings.CutSuffix(entry, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return entry == pkg
}

// allows reports whether a package of row r may import pkg, which has row to.
func (r *Row) allows(to *Row, pkg string) bool {
	if r == to || r.All && to.Floor < r.Floor {
		return true
	}
	for _, imp := range r.Imports {
		if matches(imp, pkg) {
			return true
		}
	}
	return false
}

// Core is a package, or some of its files, that decides without clock, goroutine
// and I/O of its own (contract 1).
type Core struct {
	Dir   string
	Files []string // empty: all but tests
}

// ParseCores reads the table of cores out of a Markdown text: the one whose first
// column is "core", with the package in the first cell and the files in the
// second, in backquotes; "all" is the whole package.
func ParseCores(markdown string) ([]Core, error) {
	var cores []Core
	for _, cells := range rows(markdown, "core") {
		dir := names(cells[0])
		if len(dir) != 1 || len(cells) < 2 {
			return nil, fmt.Errorf("table of cores: row %q: want one package and its files", cells)
		}
		c := Core{Dir: dir[0], Files: names(cells[1])}
		if len(c.Files) == 0 && cells[1] != "all" {
			return nil, fmt.Errorf("table of cores: row %q: want files in backquotes, or all", cells)
		}
		cores = append(cores, c)
	}
	if len(cores) == 0 {
		return nil, fmt.Errorf("no table of cores")
	}
	return cores, nil
}
