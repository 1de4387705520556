//go:build !linux

package doctor

import (
	"os"
	"runtime"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/uverbs"
)

// ThisHost is the machine that runs this process. Only Linux has RDMA devices here.
func ThisHost() *Host {
	return &Host{OS: runtime.GOOS, Kernel: report.ThisHost().Kernel, Files: os.DirFS("/"), Verbs: &uverbs.System{}}
}
