package report

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// kernelRelease is the version of Windows, as "10.0.22631".
func kernelRelease() string {
	major, minor, build := windows.RtlGetNtVersionNumbers()
	return fmt.Sprintf("%d.%d.%d", major, minor, build)
}
