package house

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// casesPath is the page with the table of cases.
const casesPath = "docs/cases.md"

var (
	caseRow  = regexp.MustCompile(`^\| (C\d\d) \|`)
	caseName = regexp.MustCompile(`\bC[0-2]\d\b`)
	caseTest = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)`")
)

// CheckCases holds the page of cases and the tests to each other. All tests that it names
// are there. Each case's row names some, and as a control others or "same"; the comments of
// its tests name the case; and a test whose comment names a case is in that row.
func CheckCases(t *Tree) (vs []Violation) {
	page, ok := t.Text[casesPath]
	if !ok {
		return nil
	}
	comments, named := map[string]string{}, map[string][]string{} // by "dir.Test", and by case
	for _, f := range t.Go {
		for _, decl := range f.Syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && f.Test && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") {
				comments[f.Dir+"."+d.Name.Name] = d.Doc.Text()
			}
		}
	}
	line := 0
	wrong := func(text string) {
		vs = append(vs, Violation{Path: casesPath, Line: line, Rule: "cases", Text: text})
	}
	for row := range strings.Lines(page) {
		line++
		for _, test := range caseTest.FindAllStringSubmatch(row, -1) {
			if _, ok := comments[test[1]+"."+test[2]]; !ok {
				wrong("there is no " + test[1] + "." + test[2])
			}
		}
		m := caseRow.FindStringSubmatch(row)
		cells := strings.Split(row, "|")
		if m == nil || len(cells) != 6 {
			continue
		}
		c := m[1]
		for column, cell := range cells[3:5] {
			found := caseTest.FindAllStringSubmatch(cell, -1)
			if len(found) == 0 && (column == 0 || !strings.Contains(cell, "same:")) {
				wrong(c + " has no test, or no control")
			}
			for _, test := range found {
				name := test[1] + "." + test[2]
				named[c] = append(named[c], name)
				if text, ok := comments[name]; ok && column == 0 && !slices.Contains(caseName.FindAllString(text, -1), c) {
					wrong(c + ": the comment of " + name + " does not name the case")
				}
			}
		}
	}
	for _, f := range t.Go {
		for _, decl := range f.Syntax.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Test || d.Recv != nil {
				continue
			}
			name := f.Dir + "." + d.Name.Name
			for _, c := range caseName.FindAllString(comments[name], -1) {
				if !slices.Contains(named[c], name) {
					vs = append(vs, t.at(d.Pos(), "cases", "%s names %s, whose row in %s does not name it", d.Name.Name, c, casesPath))
				}
			}
		}
	}
	return vs
}
