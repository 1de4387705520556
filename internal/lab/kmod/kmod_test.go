package kmod

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module builds a relocatable ELF file (elf(5)) whose one section besides the name
// table has the given name and contents.
func module(section, contents string) []byte {
	names := "\x00.shstrtab\x00" + section + "\x00"
	const head, entry = 64, 64
	var b bytes.Buffer
	put := func(fields ...any) {
		for _, f := range fields {
			binary.Write(&b, binary.LittleEndian, f)
		}
	}
	put([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	put(uint16(1), uint16(62), uint32(1), uint64(0), uint64(0)) // relocatable, x86-64
	put(uint64(head+len(names)+len(contents)), uint32(0))       // section table, flags
	put(uint16(head), uint16(0), uint16(0), uint16(entry), uint16(3), uint16(1))
	put([]byte(names), []byte(contents))
	put(make([]byte, entry))
	sec := func(name, kind uint32, at, size int) {
		put(name, kind, uint64(0), uint64(0), uint64(at), uint64(size), uint32(0), uint32(0), uint64(1), uint64(0))
	}
	sec(1, 3, head, len(names))
	sec(11, 1, head+len(names), len(contents))
	return b.Bytes()
}

// tree makes a module directory: dependencies by file name, "" for no module.
func tree(t *testing.T, deps map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, list := range deps {
		path := filepath.Join(dir, "kernel", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		info := "license=GPL\x00depends=" + list + "\x00vermagic=6.1\x00"
		if err := os.WriteFile(path, module(".modinfo", info), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "modules.builtin"), []byte("kernel/lib/libcrc-x.ko\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func names(mods []Module) string {
	var out []string
	for _, m := range mods {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func TestOrder(t *testing.T) {
	dir := tree(t, map[string]string{
		"rxe/rdma_rxe.ko":   "ib_core,ib-uverbs,libcrc_x",
		"core/ib_uverbs.ko": "ib_core",
		"core/ib_core.ko":   "",
		"net/dummy.ko":      "",
	})
	got, err := Order(dir, []string{"rdma_rxe", "dummy", "libcrc_x", "crc32_generic?", "ib_core"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("ib_core ib_uverbs rdma_rxe dummy", names(got)); diff != "" {
		t.Error(diff)
	}
}

func TestCompressed(t *testing.T) {
	if _, err := exec.LookPath("gzip"); err != nil {
		t.Skip("gzip is not installed")
	}
	dir := tree(t, map[string]string{"a.ko": "b", "b.ko": ""})
	if out, err := exec.Command("gzip", filepath.Join(dir, "kernel", "b.ko")).CombinedOutput(); err != nil {
		t.Fatalf("gzip: %v: %s", err, out)
	}
	got, err := Order(dir, []string{"a"})
	if err != nil || names(got) != "b a" {
		t.Fatalf("order %q, error %v; want b a", names(got), err)
	}
	if !bytes.HasPrefix(got[0].Image, []byte("\x7fELF")) {
		t.Error("the image of b is still compressed")
	}
}

func TestOrderErrors(t *testing.T) {
	broken := tree(t, map[string]string{"x.ko": ""})
	if err := os.WriteFile(filepath.Join(broken, "kernel", "junk.ko"), []byte("junk"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "kernel", "noinfo.ko"), module(".text", ""), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ desc, dir, wanted, want string }{
		{"missing", tree(t, map[string]string{"a.ko": ""}), "rdma_rxe", "rdma_rxe, which the lab needs: no such module"},
		{"missing dependency", tree(t, map[string]string{"a.ko": "b"}), "a", "b, which a needs: no such module"},
		{"empty directory", t.TempDir(), "a", "/lib/modules/VERSION"},
		{"no directory", "/nonexistent", "a", "/nonexistent"},
		{"no ELF", broken, "junk", "junk.ko"},
		{"no module", broken, "noinfo", "not a kernel module"},
	} {
		if _, err := Order(tc.dir, []string{tc.wanted}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.desc, err, tc.want)
		}
	}
}
