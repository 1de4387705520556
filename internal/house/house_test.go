package house

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write what the checks say of testdata/broken to broken.want")

// check runs every rule on a tree. The tables come from its ARCHITECTURE.md.
func check(t *testing.T, root string) (*Tree, map[string][]Violation) {
	t.Helper()
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	table, err := ParseTable(tree.Text["ARCHITECTURE.md"])
	if err != nil {
		t.Fatal(err)
	}
	cores, err := ParseCores(tree.Text["ARCHITECTURE.md"])
	if err != nil {
		t.Fatal(err)
	}
	return tree, map[string][]Violation{
		"imports":      CheckImports(tree, table),
		"dependencies": CheckDependencies(tree),
		"layout":       CheckLayout(tree),
		"size":         CheckSize(tree),
		"unsafe":       CheckUnsafe(tree),
		"cgo":          CheckCgo(tree),
		"cores":        CheckCores(tree, cores),
		"prints":       CheckPrints(tree),
		"docs":         CheckDocs(tree),
		"examples":     CheckExamples(tree),
		"tests":        CheckTests(tree),
		"cases":        CheckCases(tree),
		"words":        CheckWords(tree),
	}
}

// The rules hold in this repository.
func TestHouse(t *testing.T) {
	tree, found := check(t, filepath.Join("..", ".."))
	if len(tree.Go) < 20 {
		t.Fatalf("only %d Go files found: the checks would hold nothing", len(tree.Go))
	}
	for rule, vs := range found {
		t.Run(rule, func(t *testing.T) {
			for _, v := range vs {
				t.Error(v)
			}
		})
	}
}

// A tree that keeps every rule, at its edges, is not accused.
func TestClean(t *testing.T) {
	_, found := check(t, "testdata/clean")
	for _, vs := range found {
		for _, v := range vs {
			t.Error(v)
		}
	}
}

// Negative control: in a tree that breaks every rule, each breach is found, and
// nothing else. -rewrite makes broken.want anew.
func TestBroken(t *testing.T) {
	_, found := check(t, "testdata/broken")
	var got []string
	for rule, vs := range found {
		if len(vs) == 0 && rule != "size" {
			t.Errorf("rule %s found nothing", rule)
		}
		for _, v := range vs {
			got = append(got, v.String())
		}
	}
	slices.Sort(got)
	text := strings.Join(got, "\n") + "\n"
	want := "testdata/broken.want"
	if *rewrite {
		if err := os.WriteFile(want, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), text); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestSize(t *testing.T) {
	for lines, want := range map[int]int{MaxLines: 0, MaxLines + 1: 1} {
		dir := t.TempDir()
		write(t, dir, "go.mod", "module m\n")
		write(t, dir, "a.go", "package a\n"+strings.Repeat("\n", lines-1))
		tree, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(CheckSize(tree)); got != want {
			t.Errorf("%d lines: %d violations, want %d", lines, got, want)
		}
	}
}

func TestTableRefusesUpwardImports(t *testing.T) {
	const head = "| floor | package | job | may import |\n| --- | --- | --- | --- |\n"
	for desc, table := range map[string]string{
		"upward":           head + "| 0 | `a` | x | `b` |\n| 1 | `b` | x | - |\n",
		"unknown":          head + "| 0 | `a` | x | `b` |\n",
		"no package":       head + "| 0 | a | x | - |\n",
		"no floor":         head + "| low | `a` | x | - |\n",
		"too few cells":    head + "| 0 | `a` | - |\n",
		"no table":         "text\n",
		"head only":        head,
		"some other table": "| a | b |\n| --- | --- |\n| 0 | `a` |\n",
	} {
		if _, err := ParseTable(table); err == nil {
			t.Errorf("%s: accepted", desc)
		}
	}
}

// The command is one static file: built without cgo, it asks for no interpreter
// and no shared library.
func TestStatic(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a command; left out with -short")
	}
	exe := filepath.Join(t.TempDir(), "bebench")
	cmd := exec.Command("go", "build", "-o", exe, "./cmd/bebench")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := CheckStatic(f); err != nil {
		t.Error(err)
	}
}

func TestCheckStatic(t *testing.T) {
	if err := CheckStatic(bytes.NewReader(executable(elf.PT_LOAD))); err != nil {
		t.Errorf("static: %v", err)
	}
	for _, p := range []elf.ProgType{elf.PT_INTERP, elf.PT_DYNAMIC} {
		if err := CheckStatic(bytes.NewReader(executable(p))); err == nil {
			t.Errorf("%v: taken for static", p)
		}
	}
	if err := CheckStatic(strings.NewReader("#!/bin/sh\n")); err == nil {
		t.Error("a script: taken for static")
	}
}

// executable is an ELF header with one program header.
func executable(p elf.ProgType) []byte {
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	var b bytes.Buffer
	for _, v := range []any{h, elf.Prog64{Type: uint32(p)}} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(fmt.Sprint(err))
		}
	}
	return b.Bytes()
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
