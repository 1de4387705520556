package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// On a full disk there is no image and no run, but an error that says why.
func TestDiskFull(t *testing.T) {
	const full = "/dev/full" // every write to it fails (full(4))
	if _, err := os.Stat(full); err != nil {
		t.Skip("this system has no " + full)
	}
	init := filepath.Join(t.TempDir(), "init")
	if err := os.WriteFile(init, make([]byte, 4<<20), 0o755); err != nil {
		t.Fatal(err)
	}
	m := image{programs: programs{init: binary{file: init}}}
	if err := m.write(full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want no space left on device", err)
	}
	if err := m.write(filepath.Join(t.TempDir(), "initramfs")); err != nil {
		t.Errorf("on a disk with space: %v", err)
	}
}

// What replaces a directory does so whole or not at all.
func TestReplace(t *testing.T) {
	root := filepath.Join(t.TempDir(), "kernel")
	fill := func(name string, err error) func(string) error {
		return func(tmp string) error {
			return errors.Join(os.Mkdir(tmp, 0o755), os.WriteFile(filepath.Join(tmp, name), nil, 0o644), err)
		}
	}
	if err := replace(root, fill("old", nil)); err != nil {
		t.Fatal(err)
	}
	if err := replace(root, fill("new", syscall.ENOSPC)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want that of filling", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(root), "*", "*"))
	if err != nil || len(left) != 1 || left[0] != filepath.Join(root, "old") {
		t.Errorf("after a failure: %q, %v", left, err)
	}
	if err := replace(root, fill("new", nil)); err != nil {
		t.Fatal(err)
	}
	if left, _ = filepath.Glob(filepath.Join(root, "*")); len(left) != 1 || filepath.Base(left[0]) != "new" {
		t.Errorf("after success: %q", left)
	}
}
