//go:build !linux

package rdmacm

import (
	"runtime"
	"syscall"

	"github.com/byteexpress/byteexpress/verbs"
)

func openNode(string) (int, error) {
	return -1, &verbs.UnsupportedError{Feature: "RDMA CM", Missing: runtime.GOOS, Since: "linux 5.10"}
}

func write(int, []byte) syscall.Errno { return syscall.ENOSYS }
