package main

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/byteexpress/byteexpress/internal/lab/cpio"
	"github.com/byteexpress/byteexpress/internal/lab/kmod"
	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// image is what the guest's initramfs holds.
type image struct {
	programs
	modules []kmod.Module
	peers   map[string]string // path on this host by path in the guest
	links   map[string]string // link targets by path in the guest
	plan    plan.Plan
}

// Where things are in the guest.
func modulePath(m kmod.Module) string { return "/modules/" + m.Name + ".ko" }
func suiteDir(name string) string     { return "/suites/" + name }
func suiteFile(b binary) string       { return suiteDir(b.name) + "/suite.test" }

// write writes the initramfs. It is not compressed: unpacking costs more under
// emulation than reading does.
func (m image) write(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := bufio.NewWriterSize(f, 1<<20)
	if err := m.pack(cpio.NewWriter(buf)); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func (m image) pack(w *cpio.Writer) error {
	if err := addFile(w, "/init", m.init.file); err != nil {
		return err
	}
	for _, b := range m.commands {
		if err := addFile(w, "/bin/"+b.name, b.file); err != nil {
			return err
		}
	}
	for _, b := range m.suites {
		if err := addFile(w, suiteFile(b), b.file); err != nil {
			return err
		}
		for _, data := range append(b.below, tree{b.name, b.testdata}) {
			if err := addTree(w, suiteDir(data.name)+"/testdata", data.dir); err != nil {
				return err
			}
		}
	}
	for _, mod := range m.modules {
		if err := w.File(modulePath(mod), 0o644, mod.Image); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.links)) {
		if err := w.Symlink(name, m.links[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.peers)) {
		if err := addFile(w, name, m.peers[name]); err != nil {
			return err
		}
	}
	text, err := json.Marshal(m.plan)
	if err != nil {
		return err
	}
	if err := w.File(plan.Path, 0o644, text); err != nil {
		return err
	}
	if err := w.File("/etc/hosts", 0o644, []byte("127.0.0.1 localhost\n")); err != nil {
		return err
	}
	return w.Close()
}

// addFile adds a file of this host, with its permissions.
func addFile(w *cpio.Writer, name, src string) error {
	data, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	st, err := os.Stat(src)
	if err != nil {
		return err
	}
	return w.File(name, uint32(st.Mode().Perm()), data)
}

// addTree adds the files below a directory of this host; "" adds nothing.
func addTree(w *cpio.Writer, name, src string) error {
	if src == "" {
		return nil
	}
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		return addFile(w, name+"/"+filepath.ToSlash(rel), path)
	})
}
