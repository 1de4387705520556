package main

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// peers are programs of others that tests and scenarios may run, by their names.
var peers = []tool{
	{"ibv_devices", "ibverbs-utils"},
	{"ibv_devinfo", "ibverbs-utils"},
	{"ibv_rc_pingpong", "ibverbs-utils"},
	{"ibv_srq_pingpong", "ibverbs-utils"},
	{"ib_write_bw", "perftest"},
	{"ib_write_lat", "perftest"},
	{"ib_read_bw", "perftest"},
	{"ib_read_lat", "perftest"},
	{"ib_send_bw", "perftest"},
	{"ib_send_lat", "perftest"},
	{"ib_atomic_bw", "perftest"},
	{"ib_atomic_lat", "perftest"},
	{"rping", "rdmacm-utils"},
	{"ucmatose", "rdmacm-utils"},
	{"strace", "strace"},
}

// rxeDriver tells libibverbs to load its rxe provider, which is in rxePackage.
const (
	rxeDriver  = "/etc/libibverbs.d/rxe.driver"
	rxePackage = "ibverbs-providers"
)

// peerSystem is an installed Linux that has the peers.
type peerSystem struct {
	root    string // "" for this host
	libDirs []string
}

// peersFor gives a system with the peers for a machine: this host where it can run
// them, else Debian's packages, unpacked in the cache.
func peersFor(ctx context.Context, m machine, cache string) (peerSystem, error) {
	if m.arch == runtime.GOARCH {
		return peerSystem{"", m.libDirs}, need(ctx, append([]tool{{rxeDriver, rxePackage}}, peers...))
	}
	const suite = "bookworm"
	root := filepath.Join(cache, "peers-"+suite+"-"+m.arch)
	if isDir(root) {
		return peerSystem{root, m.libDirs}, nil
	}
	pkgs := []string{rxePackage}
	for _, p := range peers {
		pkgs = append(pkgs, p.pkg)
	}
	slices.Sort(pkgs)
	pkgs = slices.Compact(pkgs)
	fmt.Printf("lab: fetching %s of Debian %s for %s\n", strings.Join(pkgs, " "), suite, m.arch)
	err := replace(root, func(tmp string) error {
		a, err := newArchive(ctx, cache, suite, m.arch)
		if err != nil {
			return err
		}
		return a.unpackAll(ctx, pkgs, tmp)
	})
	return peerSystem{root, m.libDirs}, errors.Wrapf(err, "peers for %s", m.arch)
}

// program gives the path of a program on this host.
func (s peerSystem) program(name string) (string, error) {
	if s.root == "" {
		return exec.LookPath(name)
	}
	path := filepath.Join(s.root, "usr/bin", name)
	_, err := os.Stat(path)
	return path, err
}

// inside gives the path that a file of this host has in the system.
func (s peerSystem) inside(path string) string { return strings.TrimPrefix(path, s.root) }

// files gives the files that the peers need: path on this host by path in the guest.
func (s peerSystem) files() (map[string]string, error) {
	files := map[string]string{}
	var queue []string // programs and libraries whose own needs are still to be found
	for _, p := range peers {
		path, err := s.program(p.program)
		if err != nil {
			return nil, err
		}
		files["/bin/"+p.program] = path
		queue = append(queue, path)
	}
	provider, err := s.rxeProvider()
	if err != nil {
		return nil, err
	}
	files[rxeDriver], files[s.inside(provider)] = s.root+rxeDriver, provider
	queue = append(queue, provider)
	for ; len(queue) > 0; queue = queue[1:] {
		libs, err := s.needed(queue[0])
		if err != nil {
			return nil, errors.Wrap(err, queue[0])
		}
		for _, lib := range libs {
			// /lib is a link to /usr/lib on most systems, and so it is in the guest.
			dir, err := filepath.EvalSymlinks(filepath.Dir(lib))
			if err != nil {
				return nil, err
			}
			lib = filepath.Join(dir, filepath.Base(lib))
			if _, ok := files[s.inside(lib)]; !ok {
				files[s.inside(lib)] = lib
				queue = append(queue, lib)
			}
		}
	}
	return files, nil
}

// links gives the links among the system's library directories, which the guest gets
// too: a program names its loader as /lib64/..., wherever that is.
func (s peerSystem) links() map[string]string {
	links := map[string]string{}
	for _, dir := range []string{"/lib", "/lib64"} {
		if target, err := os.Readlink(s.root + dir); err == nil {
			links[dir] = target
		}
	}
	return links
}

// rxeProvider gives libibverbs's plug-in for rxe.
func (s peerSystem) rxeProvider() (string, error) {
	for _, dir := range s.libDirs {
		if found, _ := filepath.Glob(filepath.Join(s.root+dir, "libibverbs", "librxe-*.so")); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.Errorf("libibverbs/librxe-*.so: not found in %v: install ibverbs-providers (Debian) or rdma-core", s.libDirs)
}

// needed gives the loader and the libraries that an ELF file names.
func (s peerSystem) needed(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	if filepath.Base(path) == "libc.so.6" {
		// Loaded without being named in the file: to end a thread, as rping does.
		names = append(names, "libgcc_s.so.1")
	}
	var out []string
	for _, name := range names {
		i := slices.IndexFunc(s.libDirs, func(dir string) bool {
			_, err := os.Stat(filepath.Join(s.root+dir, name))
			return err == nil
		})
		if i < 0 {
			return nil, errors.Errorf("library %s: not found in %v", name, s.libDirs)
		}
		out = append(out, filepath.Join(s.root+s.libDirs[i], name))
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			loader := make([]byte, p.Filesz-1) // without its zero byte
			if _, err := p.ReadAt(loader, 0); err != nil {
				return nil, err
			}
			out = append(out, s.root+string(loader))
		}
	}
	return out, nil
}
