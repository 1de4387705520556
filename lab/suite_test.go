package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Of a suite with a regexp, every test that uses a device has a name that it matches:
// no such test is left out in the guest.
func TestDeviceTestsAreNamed(t *testing.T) {
	for name, run := range deviceTests {
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(name), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests of %s: %v", name, err)
		}
		uses := usersOfTestdev(t, files)
		pattern, tests := regexp.MustCompile(run), 0
		for f := range uses {
			if !strings.HasPrefix(f, "Test") {
				continue
			}
			tests++
			if !pattern.MatchString(f) {
				t.Errorf("%s: %s uses a device, and its name does not match %s", name, f, run)
			}
		}
		if tests == 0 {
			t.Errorf("%s: no test uses a device", name)
		}
	}
}

// What a digest test logs in the guest must be what it logged here.
func TestDigest(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	found := digest.FindString("=== RUN   TestX\n    x_test.go:63: SHA-256 of the results: " + sum + "\n--- PASS: TestX\n")
	if found != "SHA-256 of the results: "+sum {
		t.Fatalf("found %q", found)
	}
	b := binary{name: "x", plain: true, digest: found}
	for run, want := range map[string][]string{"": {found}, "TestY": nil} {
		if got := suiteItem(b, "x.test", "", options{run: run}).Procs[0].Wants; !slices.Equal(got, want) {
			t.Errorf("-run %q: wants %q, must be %q", run, got, want)
		}
	}
}

// usersOfTestdev gives the functions that name internal/testdev in their bodies, and
// those that name such a function.
func usersOfTestdev(t *testing.T, files []string) map[string]bool {
	names := map[string]map[string]bool{} // function, to what its body names
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Name.Name == "TestMain" {
				continue
			}
			in := map[string]bool{}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					in[id.Name] = true
				}
				return true
			})
			names[fn.Name.Name] = in
		}
	}
	uses := map[string]bool{"testdev": true}
	for more := true; more; {
		more = false
		for fn, in := range names {
			for used := range uses {
				if in[used] && !uses[fn] {
					uses[fn], more = true, true
				}
			}
		}
	}
	return uses
}
