package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/byteexpress/byteexpress/internal/testdev/port"
)

// dump says where each thread of a process is in the kernel, as proc(5) tells root: a
// program that waits for ever shows there what it waits for.
func dump(pid int) (lines []string) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, dir := range tasks {
		read := func(name string) string {
			b, _ := os.ReadFile(filepath.Join(dir, name))
			return strings.TrimSpace(string(b))
		}
		var stack []string
		for frame := range strings.Lines(read("stack")) {
			_, where, _ := strings.Cut(strings.TrimSpace(frame), " ")
			where, _, _ = strings.Cut(where, "+")
			stack = append(stack, where)
		}
		lines = append(lines, fmt.Sprintf("thread %s %s waits in %s: %s", filepath.Base(dir), read("comm"), read("wchan"), strings.Join(stack, " < ")))
	}
	return lines
}

// dumpDevice says how the device's port is and what it counted.
func dumpDevice(device string) (lines []string) {
	if p, err := port.Read(device); err == nil {
		lines = append(lines, p.String(), strings.Join(port.Counters(device), ", "))
	}
	return lines
}
