package rdmacm_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/verbs"
)

// Connect to a listener. The route names the device to open: here it was opened
// before, with a protection domain and a completion queue.
func ExampleDial() {
	var (
		pd    verbs.PD
		queue verbs.QPConfig
	)
	conn, err := rdmacm.Dial(context.Background(), netip.MustParseAddrPort("192.0.2.1:7174"), rdmacm.Options{
		MakeQP:  func(_ context.Context, r rdmacm.Route) (qp.QP, error) { return pd.CreateQP(queue) },
		Ready:   func(q qp.QP) error { _, err := q.PostRecv([]qp.RecvWR{{ID: 1}}); return err },
		Access:  mr.LocalWrite | mr.RemoteWrite,
		Private: []byte("hello"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Printf("queue pair %d is connected; the peer says %q\n", conn.QP().Num(), conn.Private())
}
