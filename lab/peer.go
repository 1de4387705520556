package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

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

// libDirs are where this host's loader looks for libraries.
var libDirs = []string{
	"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib",
}

// rxeDriver tells libibverbs to load its rxe provider.
const rxeDriver = "/etc/libibverbs.d/rxe.driver"

// peerFiles gives the files that the peers need: path on this host by path in the
// guest.
func peerFiles() (map[string]string, error) {
	files := map[string]string{}
	var queue []string // programs and libraries whose own needs are still to be found
	for _, p := range peers {
		path, err := exec.LookPath(p.program)
		if err != nil {
			return nil, err
		}
		files["/bin/"+p.program] = path
		queue = append(queue, path)
	}
	provider, err := rxeProvider()
	if err != nil {
		return nil, err
	}
	files[rxeDriver], files[provider] = rxeDriver, provider
	queue = append(queue, provider)
	for ; len(queue) > 0; queue = queue[1:] {
		libs, err := needed(queue[0])
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
			if _, ok := files[lib]; !ok {
				files[lib] = lib
				queue = append(queue, lib)
			}
		}
	}
	return files, nil
}

// libLinks gives the links among the library directories of this host, which the
// guest gets too: a program names its loader as /lib64/..., wherever that is.
func libLinks() map[string]string {
	links := map[string]string{}
	for _, dir := range []string{"/lib", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			links[dir] = target
		}
	}
	return links
}

// rxeProvider gives libibverbs's plug-in for rxe.
func rxeProvider() (string, error) {
	for _, dir := range libDirs {
		if found, _ := filepath.Glob(filepath.Join(dir, "libibverbs", "librxe-*.so")); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.Errorf("libibverbs/librxe-*.so: not found in %v: install ibverbs-providers (Debian) or rdma-core", libDirs)
}

// needed gives the loader and the libraries that an ELF file names.
func needed(path string) ([]string, error) {
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
		i := slices.IndexFunc(libDirs, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		})
		if i < 0 {
			return nil, errors.Errorf("library %s: not found in %v", name, libDirs)
		}
		out = append(out, filepath.Join(libDirs[i], name))
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			loader := make([]byte, p.Filesz-1) // without its zero byte
			if _, err := p.ReadAt(loader, 0); err != nil {
				return nil, err
			}
			out = append(out, string(loader))
		}
	}
	return out, nil
}
