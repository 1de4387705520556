package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// File is one Go file of a tree.
type File struct {
	Path     string // slash-separated, from the tree's root
	Dir      string // its directory; "." for the root
	Syntax   *ast.File
	Lines    int
	Test     bool // *_test.go
	External bool // a test of package x_test
}

// Main reports whether the file belongs to a command.
func (f *File) Main() bool { return f.Syntax.Name.Name == "main" }

// Imports maps the name that the file uses for an import to its path. Imports
// named _ or . are in it under their path.
func (f *File) Imports() map[string]string {
	m := map[string]string{}
	for _, spec := range f.Syntax.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(p)
		if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" {
			name = path.Base(path.Dir(p)) // math/rand/v2
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "_" || name == "." {
			name = p
		}
		m[name] = p
	}
	return m
}

// Tree is a module's source.
type Tree struct {
	Module string
	Fset   *token.FileSet
	Go     []*File
	Text   map[string]string // every text file by path, Go files included
}

// Violation is one broken rule.
type Violation struct {
	Path string
	Line int // 0: the whole file or directory
	Rule string
	Text string
}

// String gives "path:line: rule: text".
func (v Violation) String() string {
	if v.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", v.Path, v.Rule, v.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", v.Path, v.Line, v.Rule, v.Text)
}

// at makes a violation at a position.
func (t *Tree) at(pos token.Pos, rule, format string, args ...any) Violation {
	p := t.Fset.Position(pos)
	return Violation{Path: p.Filename, Line: p.Line, Rule: rule, Text: fmt.Sprintf(format, args...)}
}

// Load reads the module at root: all of it but hidden directories (.ci is read),
// bin, and modules inside it.
func Load(root string) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet(), Text: map[string]string{}}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			return t.enter(file, rel, d.Name())
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return t.read(file, rel)
	})
	if err != nil {
		return nil, err
	}
	mod, ok := t.Text["go.mod"]
	if !ok {
		return nil, fmt.Errorf("%s: no go.mod", root)
	}
	line, _, _ := strings.Cut(mod, "\n")
	t.Module = strings.TrimSpace(strings.TrimPrefix(line, "module"))
	return t, nil
}

func (t *Tree) enter(file, rel, name string) error {
	if rel == "." || name == ".ci" {
		return nil
	}
	if name[0] == '.' || rel == "bin" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (t *Tree) read(file, rel string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return nil
	}
	t.Text[rel] = string(b)
	if !strings.HasSuffix(rel, ".go") || strings.Contains("/"+rel, "/testdata/") {
		return nil
	}
	syntax, err := parser.ParseFile(t.Fset, rel, b, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(rel, "_test.go")
	t.Go = append(t.Go, &File{
		Path: rel, Dir: path.Dir(rel), Syntax: syntax, Lines: bytes.Count(b, []byte("\n")),
		Test: test, External: test && strings.HasSuffix(syntax.Name.Name, "_test"),
	})
	return nil
}

// selectors calls f for every use of an imported package's name, as in pkg.Name.
func (f *File) selectors(visit func(importPath string, sel *ast.SelectorExpr)) {
	imports := f.Imports()
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				if p, ok := imports[id.Name]; ok {
					visit(p, sel)
				}
			}
		}
		return true
	})
}
