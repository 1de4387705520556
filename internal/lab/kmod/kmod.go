// Package kmod finds kernel modules in a module directory (lib/modules/VERSION) and
// puts them in the order in which they can be loaded. It reads the modules
// themselves, so neither depmod nor modules.dep is needed.
package kmod

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Module is one module, decompressed.
type Module struct {
	Name  string // as lsmod shows it: with underscores
	Image []byte // ELF
}

// Order gives the wanted modules and all that they depend on, dependencies first.
// What is built into the kernel is left out. A wanted name that ends with "?" may
// be missing.
func Order(dir string, wanted []string) ([]Module, error) {
	s := solver{done: map[string]bool{}}
	var err error
	if s.files, err = find(dir); err != nil {
		return nil, errors.Wrapf(err, "modules in %s", dir)
	}
	if s.builtin, err = builtin(dir); err != nil {
		return nil, errors.Wrapf(err, "modules in %s", dir)
	}
	for _, name := range wanted {
		name, optional := strings.CutSuffix(name, "?")
		if _, ok := s.files[key(name)]; optional && !ok {
			continue
		}
		if err := s.add(key(name), "the lab"); err != nil {
			return nil, errors.Wrapf(err, "modules in %s", dir)
		}
	}
	return s.order, nil
}

type solver struct {
	files   map[string]string // path by module name
	builtin map[string]bool
	done    map[string]bool
	order   []Module
}

func (s *solver) add(name, by string) error {
	if s.done[name] || s.builtin[name] {
		return nil
	}
	s.done[name] = true
	path, ok := s.files[name]
	if !ok {
		return errors.Errorf("%s, which %s needs: no such module", name, by)
	}
	image, err := read(path)
	if err != nil {
		return err
	}
	deps, err := depends(image)
	if err != nil {
		return errors.Wrap(err, path)
	}
	for _, d := range deps {
		if err := s.add(d, name); err != nil {
			return err
		}
	}
	s.order = append(s.order, Module{Name: name, Image: image})
	return nil
}

// key is a module's name by its file's: dashes and underscores are the same to the
// kernel's loader.
func key(name string) string { return strings.ReplaceAll(name, "-", "_") }

// find lists the module files, under kernel/ and other directories alike.
func find(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name, _, ok := strings.Cut(d.Name(), ".ko"); ok {
			files[key(name)] = path
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errors.New("none here: it must be the directory of one kernel version, as /lib/modules/VERSION")
	}
	return files, err
}

// builtin reads the list of modules that are part of the kernel itself.
func builtin(dir string) (map[string]bool, error) {
	names := map[string]bool{}
	list, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if os.IsNotExist(err) {
		return names, nil
	}
	for line := range strings.Lines(string(list)) {
		names[key(strings.TrimSuffix(filepath.Base(strings.TrimSpace(line)), ".ko"))] = true
	}
	return names, err
}

// read gives a module's ELF image. Debian 13 and newer compress modules.
func read(path string) ([]byte, error) {
	var tool string
	switch filepath.Ext(path) {
	case ".xz":
		tool = "xz"
	case ".zst":
		tool = "zstd"
	case ".gz":
		tool = "gzip"
	default:
		return os.ReadFile(path)
	}
	out, err := exec.Command(tool, "-dc", path).Output()
	return out, errors.Wrapf(err, "%s -dc %s", tool, path)
}

// depends reads the names in "depends=" of a module's .modinfo
// section: strings that each end with a zero byte.
func depends(image []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo: not a kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	var names []string
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok {
			names = append(names, strings.Split(list, ",")...)
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	for i := range names {
		names[i] = key(names[i])
	}
	return names, nil
}
