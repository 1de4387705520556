package uverbs

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

//go:embed methods.go
var methodsSource string

// An attribute's name in the table of methods is the end of its C name, which
// TestABI ties to its number: no attribute has another's number.
func TestAttributeNames(t *testing.T) {
	cnames := map[string]string{} // of constants in abi.go
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "abi.go", abiSource, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Comment != nil {
			cnames[v.Names[0].Name] = strings.TrimSpace(v.Comment.Text())
		}
		return true
	})
	if file, err = parser.ParseFile(fset, "methods.go", methodsSource, 0); err != nil {
		t.Fatal(err)
	}
	checked := 0
	ast.Inspect(file, func(n ast.Node) bool {
		l, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := map[string]string{}
		for _, e := range l.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				switch v := kv.Value.(type) {
				case *ast.Ident:
					fields[kv.Key.(*ast.Ident).Name] = v.Name
				case *ast.BasicLit:
					fields[kv.Key.(*ast.Ident).Name] = strings.Trim(v.Value, `"`)
				}
			}
		}
		if fields["id"] == "" || fields["name"] == "" {
			return true
		}
		checked++
		if c := cnames[fields["id"]]; !strings.HasSuffix(c, "_"+fields["name"]) {
			t.Errorf("%s: attribute %s, in C %q", fset.Position(l.Pos()), fields["name"], c)
		}
		return true
	})
	if checked < 60 {
		t.Errorf("%d attributes checked: the table has more", checked)
	}
}
