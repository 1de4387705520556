package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// MaxLines is the longest a Go file may be, tests included.
const MaxLines = 499

// LinknameFiles are the only files that may use go:linkname.
var LinknameFiles = []string{"bemalloc/pinned_unsafe.go"}

// CheckSize holds files to MaxLines.
func CheckSize(t *Tree) (vs []Violation) {
	for _, f := range t.Go {
		if f.Lines > MaxLines {
			vs = append(vs, t.at(f.Syntax.Package, "size", "%d lines, at most %d: split it by concept", f.Lines, MaxLines))
			vs[len(vs)-1].Line = 0
		}
	}
	return vs
}

// CheckUnsafe keeps the import of unsafe in *_unsafe.go, also with a suffix as in
// ring_unsafe_linux.go, and in tests.
func CheckUnsafe(t *Tree) (vs []Violation) {
	for _, f := range t.Go {
		base := strings.TrimSuffix(f.Path[strings.LastIndex(f.Path, "/")+1:], ".go")
		if f.Test || strings.HasSuffix(base, "_unsafe") || strings.Contains(base, "_unsafe_") {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			if spec.Path.Value == `"unsafe"` {
				vs = append(vs, t.at(spec.Pos(), "unsafe", "unsafe belongs in a file named *_unsafe.go"))
			}
		}
	}
	return vs
}

// CheckCgo refuses cgo everywhere, and go:linkname outside LinknameFiles.
func CheckCgo(t *Tree) (vs []Violation) {
	for _, f := range t.Go {
		for _, spec := range f.Syntax.Imports {
			if spec.Path.Value == `"C"` {
				vs = append(vs, t.at(spec.Pos(), "cgo", "no cgo here"))
			}
		}
		for _, group := range f.Syntax.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:linkname") && !slices.Contains(LinknameFiles, f.Path) {
					vs = append(vs, t.at(c.Pos(), "linkname", "go:linkname is only for %v", LinknameFiles))
				}
			}
		}
	}
	return vs
}

// What a core may use of time and of math/rand.
var (
	coreTime = []string{"Duration", "Time", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}
	coreRand = []string{"Rand", "New", "Source", "PCG", "NewPCG", "ChaCha8", "NewChaCha8", "NewSource", "Zipf", "NewZipf"}
	// and what it may not import at all
	coreNot = []string{"crypto/rand", "net", "os", "golang.org/x/sys"}
)

// coreErrno matches what a core may use of syscall: error numbers.
var coreErrno = regexp.MustCompile("^(Errno|E[A-Z0-9]+)$")

// CheckCores keeps clock, goroutines, global randomness and I/O out of the cores.
// A core that has no file is a violation: the rule would hold nothing.
func CheckCores(t *Tree, cores []Core) (vs []Violation) {
	for _, c := range cores {
		found := map[string]bool{}
		for _, f := range t.Go {
			base := strings.TrimPrefix(f.Path, c.Dir+"/")
			if f.Dir != c.Dir || f.Test || len(c.Files) > 0 && !slices.Contains(c.Files, base) {
				continue
			}
			found[base] = true
			vs = append(vs, t.checkCore(f)...)
		}
		for _, name := range c.Files {
			if !found[name] {
				vs = append(vs, Violation{Path: c.Dir + "/" + name, Rule: "core", Text: "named as a core in ARCHITECTURE.md, but not there"})
			}
		}
		if len(found) == 0 && len(c.Files) == 0 {
			vs = append(vs, Violation{Path: c.Dir, Rule: "core", Text: "named as a core in ARCHITECTURE.md, but not there"})
		}
	}
	return vs
}

func (t *Tree) checkCore(f *File) (vs []Violation) {
	for _, spec := range f.Syntax.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		for _, not := range coreNot {
			if p == not || p != "net/netip" && strings.HasPrefix(p, not+"/") {
				vs = append(vs, t.at(spec.Pos(), "core", "a core does no I/O: it may not import %s", p))
			}
		}
	}
	f.selectors(func(importPath string, sel *ast.SelectorExpr) {
		switch importPath {
		case "time":
			if !slices.Contains(coreTime, sel.Sel.Name) {
				vs = append(vs, t.at(sel.Pos(), "core", "a core is given the time: no time.%s", sel.Sel.Name))
			}
		case "syscall":
			if !coreErrno.MatchString(sel.Sel.Name) {
				vs = append(vs, t.at(sel.Pos(), "core", "a core does no I/O: no syscall.%s", sel.Sel.Name))
			}
		case "math/rand", "math/rand/v2":
			if !slices.Contains(coreRand, sel.Sel.Name) {
				vs = append(vs, t.at(sel.Pos(), "core", "a core is given its random source: no rand.%s", sel.Sel.Name))
			}
		}
	})
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			vs = append(vs, t.at(g.Pos(), "core", "a core starts no goroutine"))
		}
		return true
	})
	return vs
}

// CheckPrints keeps libraries from printing: no fmt.Print, no global logger, no
// standard streams, no builtin print.
func CheckPrints(t *Tree) (vs []Violation) {
	for _, f := range t.Go {
		if f.Test || !library(f) {
			continue
		}
		say := func(pos token.Pos, what string) {
			vs = append(vs, t.at(pos, "prints", "a library does not print: no %s", what))
		}
		f.selectors(func(importPath string, sel *ast.SelectorExpr) {
			name := sel.Sel.Name
			switch {
			case importPath == "fmt" && strings.HasPrefix(name, "Print"),
				importPath == "log" && name != "New" && name != "Logger",
				importPath == "os" && (name == "Stdout" || name == "Stderr"):
				say(sel.Pos(), importPath+"."+name)
			}
		})
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
					say(call.Pos(), id.Name)
				}
			}
			return true
		})
	}
	return vs
}
