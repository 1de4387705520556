package report

import "runtime"

// Host is the machine that measured.
type Host struct {
	OS     string `json:"os"`
	Kernel string `json:"kernel,omitempty"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
	Go     string `json:"go"`
}

// ThisHost describes the machine that runs this process. CPUs is how many it may
// use.
func ThisHost() Host {
	return Host{OS: runtime.GOOS, Kernel: kernelRelease(), Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version()}
}
