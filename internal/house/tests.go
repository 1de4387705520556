package house

import (
	"go/ast"
	"slices"
)

// CheckTests wants of every library package that starts goroutines that its tests
// look for leaked ones (go.uber.org/goleak), and of every benchmark that it runs by
// b.Loop: b.N counts set-up too.
func CheckTests(t *Tree) (vs []Violation) {
	var starts []string
	looks := map[string]bool{}
	for _, f := range t.Go {
		if f.Test {
			for _, p := range f.Imports() {
				if p == "go.uber.org/goleak" {
					looks[f.Dir] = true
				}
			}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if !f.Test && library(f) && !slices.Contains(starts, f.Dir) {
					starts = append(starts, f.Dir)
				}
			case *ast.RangeStmt:
				if f.Test && isBN(n.X) {
					vs = append(vs, t.at(n.Pos(), "tests", "run benchmarks by b.Loop, not b.N"))
				}
			case *ast.ForStmt:
				if cond, ok := n.Cond.(*ast.BinaryExpr); ok && f.Test && isBN(cond.Y) {
					vs = append(vs, t.at(n.Pos(), "tests", "run benchmarks by b.Loop, not b.N"))
				}
			}
			return true
		})
	}
	for _, dir := range starts {
		if !looks[dir] {
			vs = append(vs, Violation{Path: dir, Rule: "tests", Text: "the package starts goroutines, and its tests do not look for leaked ones with goleak"})
		}
	}
	return vs
}

// isBN reports whether an expression is b.N.
func isBN(x ast.Expr) bool {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "N" {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == "b"
}
