// Package cpio writes archives in the "newc" format, which Linux unpacks as its
// initramfs (Documentation/driver-api/early-userspace/buffer-format.rst in the kernel).
package cpio

import (
	"fmt"
	"io"
	"path"
	"strings"
)

const (
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeSymlink = 0o120000
	trailer     = "TRAILER!!!"
)

// Writer writes an archive. It adds the parent directories of what it is given.
// It is not safe for concurrent use.
type Writer struct {
	w    io.Writer
	n    int64 // bytes written so far
	ino  int
	seen map[string]bool
	err  error
}

// NewWriter gives a writer of an empty archive.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, seen: map[string]bool{}} }

// File adds a regular file; of several with one name the first counts.
func (c *Writer) File(name string, perm uint32, data []byte) error {
	return c.add(name, modeRegular|perm, data)
}

// Symlink adds a symbolic link to target.
func (c *Writer) Symlink(name, target string) error {
	return c.add(name, modeSymlink|0o777, []byte(target))
}

// Dir adds a directory.
func (c *Writer) Dir(name string) error { return c.add(name, modeDir|0o755, nil) }

func (c *Writer) add(name string, mode uint32, data []byte) error {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" || c.seen[name] {
		return c.err
	}
	if int64(len(data)) >= 1<<32 {
		return fmt.Errorf("cpio %s: %d bytes, the format has room for 4 GiB", name, len(data))
	}
	if dir := path.Dir(name); dir != "." {
		c.Dir(dir)
	}
	c.seen[name] = true
	c.entry(name, mode, data)
	return c.err
}

// Close ends the archive. It does not close the underlying writer.
func (c *Writer) Close() error {
	c.entry(trailer, 0, nil)
	return c.err
}

// entry writes a header of 13 fields of 8 hexadecimal digits, the name and the
// data, each of the two padded to 4 bytes.
func (c *Writer) entry(name string, mode uint32, data []byte) {
	c.ino++
	links := 1
	if mode&modeDir != 0 && mode&modeRegular == 0 {
		links = 2
	}
	c.printf("070701")
	for _, field := range []int{
		c.ino, int(mode), 0 /* uid */, 0 /* gid */, links, 0 /* mtime */, len(data),
		0, 0, 0, 0 /* device numbers */, len(name) + 1, 0, /* checksum */
	} {
		c.printf("%08X", field)
	}
	c.printf("%s\x00", name)
	c.pad()
	c.write(data)
	c.pad()
}

func (c *Writer) pad() { c.write(make([]byte, -c.n&3)) }

func (c *Writer) printf(format string, args ...any) { c.write(fmt.Appendf(nil, format, args...)) }

func (c *Writer) write(b []byte) {
	if c.err == nil {
		var n int
		n, c.err = c.w.Write(b)
		c.n += int64(n)
	}
}
