package sim_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

func BenchmarkSend(b *testing.B) {
	for _, inline := range []bool{false, true} {
		for _, chain := range []int{1, 16} {
			b.Run(fmt.Sprintf("size=64/inline=%v/chain=%d", inline, chain), func(b *testing.B) {
				x, y, _ := newPair(b, sim.Config{}, options{})
				recvs := make([]qp.RecvWR, chain)
				sends := make([]qp.SendWR, chain)
				for i := range sends {
					recvs[i] = qp.RecvWR{SGEs: y.sge(64*i, 64)}
					sends[i] = qp.SendWR{Opcode: qp.Send, SGEs: x.sge(64*i, 64)}
					if inline {
						sends[i].SGEs, sends[i].Inline, sends[i].Flags = nil, x.buf[:64], qp.Inline
					}
				}
				sends[chain-1].Flags |= qp.Signaled
				b.ReportAllocs()
				for b.Loop() {
					step(b, x, y, recvs, sends)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chain), "ns/message")
			})
		}
	}
}

// step posts, and polls one completion of the sender and all of the receiver.
func step(b *testing.B, x, y *end, recvs []qp.RecvWR, sends []qp.SendWR) {
	if len(recvs) > 0 {
		if _, err := y.qp.PostRecv(recvs); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := x.qp.PostSend(sends); err != nil {
		b.Fatal(err)
	}
	for got := 0; got < 1; {
		n, err := x.cq.Poll(x.got[:])
		if err != nil || n > 0 && x.got[0].Status != cq.Success {
			b.Fatal(err, x.got[0].Err())
		}
		got += n
	}
	for got := 0; got < len(recvs); {
		n, err := y.cq.Poll(y.got[:])
		if err != nil {
			b.Fatal(err)
		}
		got += n
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			x, y, _ := newPair(b, sim.Config{}, options{buf: 1 << 20})
			sends := []qp.SendWR{{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: y.reg.Addr, RKey: y.reg.RKey, SGEs: x.sge(0, size)}}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				step(b, x, y, nil, sends)
			}
		})
		b.Run(fmt.Sprintf("size=%d/copy", size), func(b *testing.B) {
			src, dst := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				copy(dst, src)
			}
		})
	}
}

func BenchmarkPollEmpty(b *testing.B) {
	x, _, _ := newPair(b, sim.Config{}, options{})
	for b.Loop() {
		if n, err := x.cq.Poll(x.got[:]); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkPingPong bounces a message between two goroutines that sleep in Wait,
// or poll.
func BenchmarkPingPong(b *testing.B) {
	for _, sleep := range []bool{true, false} {
		b.Run(fmt.Sprintf("size=64/sleep=%v", sleep), func(b *testing.B) {
			x, y, _ := newPair(b, sim.Config{}, options{})
			wait := func(e *end) error {
				for {
					var n int
					var err error
					if sleep {
						n, err = pollWait(b.Context(), e)
					} else if n, err = e.cq.Poll(e.got[:]); n == 0 {
						runtime.Gosched()
					}
					for i := range n {
						if e.got[i].Opcode == cq.Recv {
							return err
						}
					}
					if err != nil {
						return err
					}
				}
			}
			bounce := func(e *end) {
				e.recv(1, 0, 64)
				e.send(qp.SendWR{Opcode: qp.Send, Flags: qp.Signaled, SGEs: e.sge(64, 64)})
			}
			x.recv(1, 0, 64)
			y.recv(1, 0, 64)
			done := make(chan error, 1)
			go func() {
				for {
					if err := wait(y); err != nil {
						done <- err
						return
					}
					bounce(y)
				}
			}()
			for b.Loop() {
				bounce(x)
				if err := wait(x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2, "ns/one-way")
			y.dev.(*sim.Device).Remove()
			<-done
		})
	}
}
