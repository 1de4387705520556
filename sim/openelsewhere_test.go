package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// TestOtherProcess: a device of another process's default fabric has none of our GIDs, and a
// queue pair to it is refused at once, with the reason.
func TestOtherProcess(t *testing.T) {
	dev, err := sim.Open("sim:")
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Close()
	gids, err := ctx.GIDs(1)
	if err != nil {
		t.Fatal(err)
	}
	const ask = "SIM_TEST_PRINT_GID"
	if os.Getenv(ask) != "" {
		fmt.Printf("gid %x.\n", gids[1].GID[:])
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
	cmd.Env = append(os.Environ(), ask+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("this test does not run once more: %v: %s", err, out)
	}
	var theirs verbs.GID
	_, after, _ := strings.Cut(string(out), "gid ")
	var b []byte
	if _, err := fmt.Sscanf(after, "%x", &b); err != nil || copy(theirs[:], b) != len(theirs) {
		t.Fatalf("no GID in %q: %v", out, err)
	}
	pd, err := ctx.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	defer pd.Close()
	q, err := ctx.CreateCQ(verbs.CQConfig{Entries: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	k, err := pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: qp.Caps{SendWR: 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	p := qp.Path{Port: 1, SGIDIndex: 1, DestNum: k.Num(), DGID: theirs, Global: true, MTU: qp.MTU1024}
	if err := p.ToInit(k); err != nil {
		t.Fatal(err)
	}
	if err := p.ToRTR(k); !errors.Is(err, syscall.EHOSTUNREACH) || !strings.Contains(err.Error(), "their own process") {
		t.Errorf("queue pair to %v of another process, ours is %v: %v", theirs, gids[1].GID, err)
	}
}
