package doctor

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/uverbs"
)

// ThisHost is the machine that runs this process.
func ThisHost() *Host {
	h := &Host{OS: runtime.GOOS, Kernel: report.ThisHost().Kernel, Files: os.DirFS("/"), Verbs: &uverbs.System{}, Program: program}
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) == nil {
		h.Memlock = Limit{true, l.Cur, l.Max}
	}
	return h
}

func program() (io.ReaderAt, io.Closer, error) {
	f, err := os.Open("/proc/self/exe")
	return f, f, err
}
