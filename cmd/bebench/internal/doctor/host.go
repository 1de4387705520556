package doctor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// Host is the machine as the checks see it. Tests give their own.
type Host struct {
	OS      string         // runtime.GOOS
	Kernel  string         // release, as "6.12.5-amd64"; empty: not known
	Files   fs.FS          // what is below /
	Verbs   *uverbs.System // devices
	Memlock Limit          // of locked memory
	// Program opens the running executable.
	Program func() (io.ReaderAt, io.Closer, error)
	// Loop tests a device; nil is LoopTest.
	Loop func(ctx context.Context, dev verbs.Device) (Loop, error)
}

// Limit is a resource limit in bytes.
type Limit struct {
	Known      bool
	Soft, Hard uint64 // unlimited: the largest number
}

// unlimited is RLIM_INFINITY.
const unlimited = ^uint64(0)

// read gives the trimmed content of a file, "" if it cannot be read; the path is
// relative to /.
func (h *Host) read(parts ...string) string {
	b, err := fs.ReadFile(h.Files, path.Join(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (h *Host) exists(parts ...string) bool {
	_, err := fs.Stat(h.Files, path.Join(parts...))
	return err == nil
}

// denied reports a file that is there and may not be looked at.
func (h *Host) denied(name string) bool {
	_, err := fs.Stat(h.Files, name)
	return errors.Is(err, fs.ErrPermission)
}

func (h *Host) list(dir string) (names []string) {
	entries, _ := fs.ReadDir(h.Files, dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// number reads a file with one number.
func (h *Host) number(parts ...string) (int, bool) {
	n, err := strconv.Atoi(h.read(parts...))
	return n, err == nil
}

// field reads a line "NAME: value" of a file in /proc.
func (h *Host) field(file, name string) string {
	for line := range strings.Lines(h.read(file)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// container says how this process is known to be in a container; empty: it is not.
func (h *Host) container() string {
	for file, what := range map[string]string{".dockerenv": "docker", "run/.containerenv": "podman"} {
		if h.exists(file) {
			return what
		}
	}
	for _, word := range []string{"kubepods", "docker", "containerd", "libpod", "lxc"} {
		if strings.Contains(h.read("proc/self/cgroup"), word) {
			return word
		}
	}
	return ""
}
