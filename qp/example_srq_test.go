package qp_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// Many connections share one pool of receives. A limit tells when it runs low.
func ExampleSRQ() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dev, err := sim.Open("sim:")
	must(err)
	ctx, err := dev.Open()
	must(err)
	defer ctx.Close()
	pd, err := ctx.AllocPD()
	must(err)
	defer pd.Close()
	cq, err := ctx.CreateCQ(verbs.CQConfig{Entries: 64})
	must(err)
	defer cq.Close()
	buf, err := mmio.Anonymous(4096)
	must(err)
	defer buf.Close()
	region, err := pd.Register(buf.Bytes(), mr.LocalWrite)
	must(err)
	defer pd.Deregister(region)

	srq, err := pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 32, RecvSGE: 1}})
	must(err)
	defer srq.Close()
	for i := range uint64(32) {
		_, err := srq.PostRecv([]qp.RecvWR{{ID: i, SGEs: []qp.SGE{{Addr: region.Addr + 128*i, Length: 128, LKey: region.LKey}}}})
		must(err)
	}
	must(srq.Arm(8)) // verbs.EventSRQLimit when fewer than 8 are left

	for range 3 { // three connections, all with the same receives
		q, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, Caps: qp.Caps{SendWR: 4, SendSGE: 1}, SRQ: srq})
		must(err)
		defer q.Close()
		_, err = q.PostRecv([]qp.RecvWR{{}})
		fmt.Println(err == qp.ErrSharedRecv)
	}
	attr, err := srq.Query()
	must(err)
	fmt.Println("limit", attr.Limit, "of", attr.Caps.RecvWR)
	// Output:
	// true
	// true
	// true
	// limit 8 of 32
}
