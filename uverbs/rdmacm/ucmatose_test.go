//go:build linux

package rdmacm_test

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
)

// ucmatose (rdma-core, librdmacm/examples/cmatose.c) makes several connections; on
// each the server sends its messages first, then the client. Both disconnect at the
// end, and wait for the other's.
const (
	ucmatose     = "ucmatose"
	ucmatosePort = 7391
	tosePeers    = 3
	toseMessages = 8
	toseSize     = 300
)

func (s *side) toseOptions() rdmacm.Options {
	o := s.options("")
	o.RawPrivate = true
	o.Ready = func(q qp.QP) error {
		for range toseMessages {
			if err := s.recv(q, 0, toseSize); err != nil {
				return err
			}
		}
		return nil
	}
	return o
}

// messages sends all of a connection's messages, or takes all of the peer's.
func (s *side) messages(ctx context.Context, send bool) error {
	for range toseMessages {
		if send {
			if err := s.post(qp.SendWR{Opcode: qp.Send, SGEs: s.sge(toseSize, toseSize)}); err != nil {
				return err
			}
		}
	}
	for range toseMessages {
		c, err := s.next(ctx)
		if err != nil {
			return err
		}
		if c.Opcode.IsRecv() == send || !send && c.ByteLen != toseSize {
			return fmt.Errorf("completion %+v", c)
		}
	}
	return nil
}

func TestUcmatose(t *testing.T) {
	needPeer(t, ucmatose)
	args := []string{"-c", strconv.Itoa(tosePeers), "-C", strconv.Itoa(toseMessages), "-S", strconv.Itoa(toseSize), "-p"}
	for _, server := range []bool{true, false} { // the peer
		t.Run(fmt.Sprintf("peer is server=%v", server), func(t *testing.T) {
			noLeaks(t)
			ctx := patient(t)
			var sides []*side
			for range tosePeers {
				sides = append(sides, newSide(t, 4096))
			}
			var conns []*rdmacm.Conn
			var wait func()
			if addr := localAddr(t, ucmatosePort); server {
				wait = startPeer(ctx, t, ucmatose, append(args, strconv.Itoa(ucmatosePort), "-b", addr.Addr().String())...)
				for _, s := range sides {
					conns = append(conns, dialUntil(ctx, t, addr, s.toseOptions()))
				}
			} else {
				l, err := rdmacm.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
				must(t, err)
				defer l.Close()
				wait = startPeer(ctx, t, ucmatose, append(args, strconv.Itoa(int(l.Addr().Port())), "-s", addr.Addr().String())...)
				for _, s := range sides {
					c, err := l.Accept(ctx, s.toseOptions())
					must(t, err)
					conns = append(conns, c)
				}
			}
			for _, sending := range []bool{!server, server} {
				for _, s := range sides {
					must(t, s.messages(ctx, sending))
				}
			}
			for _, c := range conns {
				if server { // it disconnects by itself
					must(t, c.Wait(ctx))
				}
				must(t, c.Disconnect())
			}
			for _, c := range conns {
				must(t, c.Wait(ctx))
				must(t, c.Close())
			}
			wait()
		})
	}
}
