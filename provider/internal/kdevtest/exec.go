//go:build linux

package kdevtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// childEnv marks the process that Exec starts.
const childEnv = "KDEVTEST_CHILD"

// Exec: programs that are started while the device is open and memory registered
// leave both alone: the peer still writes to the memory that this process reads, and
// the child has no descriptor of the device. Control: it does have the one that it
// is given.
func (r *Rig) Exec(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		links, _ := filepath.Glob("/proc/self/fd/*")
		for _, l := range links {
			to, _ := os.Readlink(l)
			fmt.Println("child has", to)
		}
		return
	}
	p := r.Connect(t, Config{})
	given, err := os.Open("/dev/zero")
	Must(t, err)
	defer given.Close()
	for i := range 5 {
		for j := range p.A.Mem {
			p.A.Mem[j] = byte(i*31 + j)
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
		cmd.Env = append(os.Environ(), childEnv+"=1")
		cmd.ExtraFiles = []*os.File{given}
		var out bytes.Buffer
		cmd.Stdout = &out
		Must(t, cmd.Start())
		// The child runs, and this process stores to the pages that the device has.
		clear(p.B.Mem)
		write := func() {
			p.A.Send(t, qp.SendWR{ID: 2, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, len(p.A.Mem))}, RemoteAddr: p.B.MR.Addr, RKey: p.B.MR.RKey})
			p.A.Want(t, cq.Completion{ID: 2, Opcode: cq.Write})
			if !bytes.Equal(p.A.Mem, p.B.Mem) {
				t.Fatal("the peer's write did not reach the memory of this process")
			}
		}
		write()
		Must(t, cmd.Wait())
		clear(p.B.Mem)
		write()
		has := out.String()
		if strings.Contains(has, "infiniband") || !strings.Contains(has, "child has /dev/zero") {
			t.Errorf("the child's descriptors:\n%s", has)
		}
	}
}
