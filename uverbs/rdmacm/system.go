package rdmacm

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// System is the kernel as this package sees it. The zero value is the one that runs;
// tests give stand-ins. A System may be used by several goroutines and must not change
// while in use.
type System struct {
	// Verbs lists the devices, and its SysRoot and DevRoot are this package's too; nil
	// is the kernel's.
	Verbs *uverbs.System
	// OpenNode opens the device node without blocking; nil is the kernel's. It reports
	// an errno.
	OpenNode func(path string) (fd int, err error)
	// Write makes one command: a header (struct rdma_ucm_cmd_hdr) and its struct. The
	// kernel writes the response to the address in it, which is that of resp. nil is the
	// kernel's write().
	Write func(fd int, cmd, resp []byte) syscall.Errno
}

func (s *System) verbs() *uverbs.System {
	if s.Verbs != nil {
		return s.Verbs
	}
	return &uverbs.System{}
}

func (s *System) node() string {
	dev := "/dev"
	if s.verbs().DevRoot != "" {
		dev = s.verbs().DevRoot
	}
	return filepath.Join(dev, "infiniband", "rdma_cm")
}

func (s *System) open() (int, error) {
	if err := s.checkABI(); err != nil {
		return -1, err
	}
	open := s.OpenNode
	if open == nil {
		open = openNode
	}
	fd, err := open(s.node())
	if err != nil {
		return -1, openError(s.node(), err)
	}
	return fd, nil
}

// checkABI refuses a kernel whose ABI is another one. Where sysfs does not tell, the
// first command will.
func (s *System) checkABI() error {
	sys := "/sys"
	if s.verbs().SysRoot != "" {
		sys = s.verbs().SysRoot
	}
	b, err := os.ReadFile(filepath.Join(sys, "class", "misc", "rdma_cm", "abi_version"))
	if v := strings.TrimSpace(string(b)); err == nil && v != strconv.Itoa(abiVersion) {
		return &verbs.UnsupportedError{Feature: "RDMA CM ABI version " + strconv.Itoa(abiVersion), Missing: "the kernel, which has version " + v}
	}
	return nil
}

func (s *System) write(fd int, cmd, resp []byte) syscall.Errno {
	if s.Write != nil {
		return s.Write(fd, cmd, resp)
	}
	return write(fd, cmd)
}
