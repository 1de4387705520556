package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// TestOtherProcess: a device of another process's default fabric has none of our GIDs, and a
// queue pair to it is refused at once, with the reason.
func TestOtherProcess(t *testing.T) {
	o := options{}
	o.fill()
	e := newEnd(t, must[verbs.Device](t)(sim.Open("sim:")), &o)
	defer e.close()
	ours := must[[]verbs.GIDEntry](t)(e.ctx.GIDs(1))[o.path.SGIDIndex].GID
	const ask = "SIM_TEST_PRINT_GID"
	if os.Getenv(ask) != "" {
		fmt.Printf("gid %x.\n", ours[:])
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
	cmd.Env = append(os.Environ(), ask+"=1")
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		t.Fatalf("in another process: %v: %s", err, out)
	} else if err != nil {
		t.Skipf("this system starts no test from a test: %v", err)
	}
	_, after, _ := strings.Cut(string(out), "gid ")
	var b []byte
	if _, err := fmt.Sscanf(after, "%x", &b); err != nil || copy(e.path.DGID[:], b) != len(ours) {
		t.Fatalf("no GID in %q: %v", out, err)
	}
	e.path.DestNum = e.qp.Num()
	check(t, e.path.ToInit(e.qp))
	if err := e.path.ToRTR(e.qp); !errors.Is(err, syscall.EHOSTUNREACH) || !strings.Contains(err.Error(), "their own process") {
		t.Errorf("queue pair to %v of another process, ours is %v: %v", e.path.DGID, ours, err)
	}
}
