// Package abicheck checks constants in Go source against tables that a C compiler
// made from the kernel's headers.
//
// In a checked file every constant has a line comment with its C name: of a
// constant ("UVERBS_OBJECT_PD"), of a struct whose size it is ("ib_uverbs_reg_mr"),
// or of a field whose offset it is ("ib_uverbs_reg_mr.start"). A field's type from
// package abi gives its size, which is checked too. A constant without such a
// comment is an error, so nothing in the file escapes.
package abicheck

import (
	"bufio"
	"compress/gzip"
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// Tables holds the facts of the C side.
type Tables struct {
	constants map[string]string
	fields    map[string][2]int // "struct.field" or "struct": offset, size
}

// The tables are the output of C programs over the headers of Linux 6.1 and of
// rdma-core: constants.tsv has name and value, offsets.tsv has header, struct,
// field, offset and size.
//
//go:embed testdata
var files embed.FS

func load() (*Tables, error) {
	t := &Tables{constants: map[string]string{}, fields: map[string][2]int{}}
	err := rows("testdata/constants.tsv.gz", func(c []string) { t.constants[c[0]] = c[1] })
	if err != nil {
		return nil, err
	}
	return t, rows("testdata/offsets.tsv.gz", func(c []string) {
		off, _ := strconv.Atoi(c[3])
		size, _ := strconv.Atoi(c[4])
		name := c[1]
		if c[2] != "-" {
			name += "." + c[2]
		}
		t.fields[name] = [2]int{off, size}
	})
}

func rows(path string, row func([]string)) error {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	s := bufio.NewScanner(z)
	s.Scan() // heading
	for s.Scan() {
		row(strings.Split(s.Text(), "\t"))
	}
	return s.Err()
}

// File checks every constant of a Go source file, which the test embeds, so that
// it also runs where the source is not.
func File(t *testing.T, name, src string) {
	t.Helper()
	tables, err := load()
	if err != nil {
		t.Fatal(err)
	}
	n, errs := check(tables, name, src)
	for _, e := range errs {
		t.Error(e)
	}
	if n == 0 {
		t.Errorf("%s has no constants to check", name)
	}
}

// fieldSizes gives the size of a field by its type in package abi; 0 is any.
var fieldSizes = map[string]int{"U8": 1, "U16": 2, "U32": 4, "U64": 8, "BE16": 2, "BE32": 4, "BE64": 8, "Struct": 0}

func check(tables *Tables, path, src string) (n int, errs []error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	if err != nil {
		return 0, []error{err}
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			n++
			v := s.(*ast.ValueSpec)
			if err := tables.spec(v); err != nil {
				errs = append(errs, fmt.Errorf("%v: %s: %w", fset.Position(v.Pos()), v.Names[0].Name, err))
			}
		}
	}
	return n, errs
}

func (t *Tables) spec(v *ast.ValueSpec) error {
	if v.Comment == nil || len(v.Values) != 1 || len(v.Names) != 1 {
		return fmt.Errorf("one constant a line, with its C name as a comment")
	}
	cname, _, _ := strings.Cut(strings.TrimSpace(v.Comment.Text()), " ")
	lit, ok := v.Values[0].(*ast.BasicLit)
	if !ok {
		return fmt.Errorf("the value must be a number")
	}
	got, err := strconv.ParseUint(lit.Value, 0, 64)
	if err != nil {
		return err
	}
	if c, ok := t.constants[cname]; ok {
		if want, err := strconv.ParseUint(c, 10, 64); err != nil || got != want {
			return fmt.Errorf("is %d, C has %s = %s", got, cname, c)
		}
		return nil
	}
	f, ok := t.fields[cname]
	if !ok {
		return fmt.Errorf("no %q in C", cname)
	}
	if !strings.Contains(cname, ".") {
		if int(got) != f[1] {
			return fmt.Errorf("is %d, C's size of %s is %d", got, cname, f[1])
		}
		return nil
	}
	if int(got) != f[0] {
		return fmt.Errorf("is %d, C's offset of %s is %d", got, cname, f[0])
	}
	sel, ok := v.Type.(*ast.SelectorExpr)
	if !ok {
		return fmt.Errorf("the offset of %s needs a type of package abi", cname)
	}
	if size, ok := fieldSizes[sel.Sel.Name]; !ok || size != 0 && size != f[1] {
		return fmt.Errorf("type %s, but %s has %d bytes", sel.Sel.Name, cname, f[1])
	}
	return nil
}
