package verbs_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// A window opens the first 8 bytes of a region to the peer of one queue pair, and
// closes them again, without registering anything anew.
func ExampleMemoryOf() {
	if err := lend(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// BIND_MW: success
	// RDMA_WRITE: success
	// LOCAL_INV: success
	// RDMA_WRITE: remote access error
}

func lend() error {
	var sides [2]*side
	for i := range sides {
		d, err := sim.Open("sim:")
		if err != nil {
			return err
		}
		if sides[i], err = open(d, 0); err != nil {
			return err
		}
	}
	owner, peer := sides[0], sides[1]
	if err := owner.aim(peer); err != nil {
		return err
	}
	if err := peer.aim(owner); err != nil {
		return err
	}

	memory, err := verbs.MemoryOf(owner.pd)
	if err != nil {
		return err
	}
	window, err := memory.AllocWindow()
	if err != nil {
		return err // wraps verbs.ErrUnsupported: do without windows
	}
	buf, err := mmio.Anonymous(4096)
	if err != nil {
		return err
	}
	defer buf.Close()
	region, err := owner.pd.Register(buf.Bytes(), mr.LocalWrite|mr.WindowBind)
	if err != nil {
		return err
	}
	key := window.RKey.Next() // what the peer is told
	write := qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled | qp.Inline, RKey: key, RemoteAddr: region.Addr, Inline: []byte("lent")}
	for _, step := range []struct {
		who *side
		wr  qp.SendWR
	}{
		{owner, qp.SendWR{Opcode: qp.BindMW, Flags: qp.Signaled, RKey: window.RKey, Bind: &qp.Bind{Region: region.LKey, Addr: region.Addr, Length: 8, Access: mr.RemoteWrite, RKey: key}}},
		{peer, write},
		{owner, qp.SendWR{Opcode: qp.LocalInv, Flags: qp.Signaled, RKey: key}},
		{peer, write},
	} {
		if _, err := step.who.qp.PostSend([]qp.SendWR{step.wr}); err != nil {
			return err
		}
		c, err := step.who.wait()
		if err != nil {
			return err
		}
		fmt.Printf("%v: %v\n", step.wr.Opcode, c.Status.String())
	}
	if err := memory.FreeWindow(window); err != nil {
		return err
	}
	if err := owner.pd.Deregister(region); err != nil {
		return err
	}
	if err := peer.close(); err != nil {
		return err
	}
	return owner.close()
}
