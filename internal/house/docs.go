package house

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// CheckDocs wants a comment on every exported name outside tests and commands,
// and on every package. A comment on a group of constants or variables counts
// for its members, as does one at the end of a member's line. Fields of structs
// are left to the author.
func CheckDocs(t *Tree) (vs []Violation) {
	documented := map[string]bool{}
	var dirs []string
	for _, f := range t.Go {
		if f.Test {
			continue
		}
		if !slices.Contains(dirs, f.Dir) {
			dirs = append(dirs, f.Dir)
		}
		if f.Syntax.Doc != nil {
			documented[f.Dir] = true
		}
		if f.Main() {
			continue
		}
		missing := func(pos token.Pos, name string) {
			vs = append(vs, t.at(pos, "docs", "%s is exported and has no comment", name))
		}
		for _, decl := range f.Syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
					missing(d.Pos(), d.Name.Name)
				}
			case *ast.GenDecl:
				checkGroup(d, missing)
			}
		}
	}
	for _, dir := range dirs {
		if !documented[dir] {
			vs = append(vs, Violation{Path: dir, Rule: "docs", Text: "the package has no package comment"})
		}
	}
	return vs
}

func checkGroup(d *ast.GenDecl, missing func(token.Pos, string)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if !s.Name.IsExported() {
				continue
			}
			if d.Doc == nil && s.Doc == nil {
				missing(s.Pos(), s.Name.Name)
			}
			if i, ok := s.Type.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					if len(m.Names) > 0 && m.Names[0].IsExported() && m.Doc == nil && m.Comment == nil {
						missing(m.Pos(), s.Name.Name+"."+m.Names[0].Name)
					}
				}
			}
		case *ast.ValueSpec:
			if d.Doc != nil || s.Doc != nil || s.Comment != nil {
				continue
			}
			for _, n := range s.Names {
				if n.IsExported() {
					missing(n.Pos(), n.Name)
				}
			}
		}
	}
}

// exportedReceiver reports whether d is a function, or a method of an exported
// type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// CheckExamples wants an Example in every package that others can import, or in one
// that it lies under.
func CheckExamples(t *Tree) (vs []Violation) {
	var dirs []string
	has := map[string]bool{}
	for _, f := range t.Go {
		if !f.Test {
			if library(f) && !slices.Contains(dirs, f.Dir) {
				dirs = append(dirs, f.Dir)
			}
			continue
		}
		for _, decl := range f.Syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Example") {
				has[f.Dir] = true
			}
		}
	}
	for _, dir := range dirs {
		covered := has[dir]
		for up := path.Dir(dir); up != "."; up = path.Dir(up) {
			covered = covered || has[up]
		}
		if !covered {
			vs = append(vs, Violation{Path: dir, Rule: "examples", Text: "a public package has an Example"})
		}
	}
	return vs
}
