package nic

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// errorCase is one cause of an error and what each side then reports. A posts one
// good WRITE (1), the request under test (2) and one more WRITE (3), all
// signaled; B has the receives 11 and 12.
type errorCase struct {
	desc   string
	path   func(a, b *qp.Path)
	do     func(x, y *vend, wr *qp.SendWR) // makes the request under test
	recv   func(y *vend, r *qp.RecvWR)     // changes receive 11
	a, b   string                          // completions
	events string                          // of B
}

const (
	aFails = "1:SUCCESS 2:%s 3:WR_FLUSH_ERR"
	bFlush = "11:WR_FLUSH_ERR 12:WR_FLUSH_ERR"
)

func failing(st cq.Status) string { return fmt.Sprintf(aFails, st.Name()) }

var errorCases = []errorCase{
	{desc: "lkey unknown", do: func(x, y *vend, wr *qp.SendWR) { wr.SGEs[0].LKey ^= 1 << 5 },
		a: failing(cq.LocalProtectionError)},
	{desc: "rkey used as lkey", do: func(x, y *vend, wr *qp.SendWR) { wr.SGEs[0].LKey = mr.LKey(x.reg.RKey) },
		a: failing(cq.LocalProtectionError)},
	{desc: "local segment ends beyond the region", do: func(x, y *vend, wr *qp.SendWR) { wr.SGEs[0].Addr += uint64(len(x.buf)) - 15 },
		a: failing(cq.LocalProtectionError)},
	{desc: "local segment begins before the region", do: func(x, y *vend, wr *qp.SendWR) { wr.SGEs[0].Addr-- },
		a: failing(cq.LocalProtectionError)},
	{desc: "local segment wraps around", do: func(x, y *vend, wr *qp.SendWR) { wr.SGEs[0].Addr = ^uint64(0) - 3 },
		a: failing(cq.LocalProtectionError)},
	{desc: "local region deregistered", do: func(x, y *vend, wr *qp.SendWR) {
		r := x.register(x.buf, rights)
		wr.SGEs[0].LKey = r.LKey
		x.h.nic.DestroyRegion(r)
	}, a: failing(cq.LocalProtectionError)},
	{desc: "local region of another domain", do: func(x, y *vend, wr *qp.SendWR) {
		r, _ := x.h.nic.CreateRegion(&PD{}, x.buf, rights)
		wr.SGEs[0].LKey = r.LKey
	}, a: failing(cq.LocalProtectionError)},
	{desc: "READ into a region without local-write", do: func(x, y *vend, wr *qp.SendWR) {
		*wr = y.remote(qp.Read, []qp.SGE{{Addr: x.reg.Addr, Length: 16, LKey: x.register(x.buf, mr.RemoteRead).LKey}})
	}, a: failing(cq.LocalProtectionError)},
	{desc: "READ with no READs allowed", path: func(a, b *qp.Path) { a.MaxReads = 0 },
		do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.Read, wr.SGEs) }, a: failing(cq.LocalQPOperationError)},

	{desc: "rkey unknown", do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.Write, wr.SGEs); wr.RKey ^= 1 << 7 },
		a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "lkey used as rkey", do: func(x, y *vend, wr *qp.SendWR) {
		*wr = y.remote(qp.Write, wr.SGEs)
		wr.RKey = mr.RKey(y.reg.LKey)
	}, a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "WRITE beyond the region", do: func(x, y *vend, wr *qp.SendWR) {
		*wr = y.remote(qp.Write, wr.SGEs)
		wr.RemoteAddr += uint64(len(y.buf)) - 15
	}, a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "WRITE to a wrapping address", do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.Write, wr.SGEs); wr.RemoteAddr = ^uint64(0) },
		a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "stale rkey", do: func(x, y *vend, wr *qp.SendWR) {
		r := y.register(y.buf, rights)
		*wr = y.remote(qp.Write, wr.SGEs)
		wr.RKey = r.RKey
		y.h.nic.DestroyRegion(r)
		y.register(y.buf, rights) // takes the slot
	}, a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "rkey of another domain", do: func(x, y *vend, wr *qp.SendWR) {
		r, _ := y.h.nic.CreateRegion(&PD{}, y.buf, rights)
		*wr = y.remote(qp.Write, wr.SGEs)
		wr.RKey = r.RKey
	}, a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "WRITE to a region without remote-write", do: func(x, y *vend, wr *qp.SendWR) {
		*wr = y.remote(qp.Write, wr.SGEs)
		wr.RKey = y.register(y.buf, mr.LocalWrite|mr.RemoteRead).RKey
	}, a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "READ of a region without remote-read", do: func(x, y *vend, wr *qp.SendWR) {
		*wr = y.remote(qp.Read, wr.SGEs)
		wr.RKey = y.register(y.buf, mr.LocalWrite|mr.RemoteWrite).RKey
	}, a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "atomic on a region without remote-atomic", do: func(x, y *vend, wr *qp.SendWR) {
		*wr = y.remote(qp.FetchAdd, []qp.SGE{x.sge(0, 8)})
		wr.RKey = y.register(y.buf, mr.LocalWrite|mr.RemoteWrite|mr.RemoteRead).RKey
	}, a: failing(cq.RemoteAccessError), b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "WRITE with immediate to a bad rkey", do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.WriteWithImm, wr.SGEs); wr.RKey ^= 1 << 7 },
		a: failing(cq.RemoteAccessError), b: "11:LOC_ACCESS_ERR 12:WR_FLUSH_ERR"},

	{desc: "WRITE not enabled on the queue pair", path: func(a, b *qp.Path) { b.Access = mr.LocalWrite | mr.RemoteRead },
		do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.Write, wr.SGEs) },
		a:  "1:REM_INV_REQ_ERR 2:WR_FLUSH_ERR 3:WR_FLUSH_ERR", b: bFlush, events: "QP_ACCESS_ERR"},
	{desc: "READ not enabled on the queue pair", path: func(a, b *qp.Path) { b.Access = mr.LocalWrite | mr.RemoteWrite },
		do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.Read, wr.SGEs) },
		a:  failing(cq.RemoteInvalidRequestError), b: bFlush, events: "QP_REQ_ERR"},
	{desc: "atomic not enabled on the queue pair", path: func(a, b *qp.Path) { b.Access = mr.LocalWrite | mr.RemoteWrite },
		do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.CompareSwap, []qp.SGE{x.sge(0, 8)}) },
		a:  failing(cq.RemoteInvalidRequestError), b: bFlush, events: "QP_REQ_ERR"},
	{desc: "peer serves no READs", path: func(a, b *qp.Path) { b.MaxDestReads = 0 },
		do: func(x, y *vend, wr *qp.SendWR) { *wr = y.remote(qp.Read, wr.SGEs) },
		a:  failing(cq.RemoteInvalidRequestError), b: bFlush, events: "QP_REQ_ERR"},
	{desc: "receive too short", recv: func(y *vend, r *qp.RecvWR) { r.SGEs[0].Length = 15 },
		a: failing(cq.RemoteInvalidRequestError), b: "11:LOC_LEN_ERR 12:WR_FLUSH_ERR"},
	{desc: "receive of no segments", recv: func(y *vend, r *qp.RecvWR) { r.SGEs = nil },
		a: failing(cq.RemoteInvalidRequestError), b: "11:LOC_LEN_ERR 12:WR_FLUSH_ERR"},
	{desc: "receive with a bad lkey", recv: func(y *vend, r *qp.RecvWR) { r.SGEs[0].LKey ^= 1 << 5 },
		a: failing(cq.RemoteOperationError), b: "11:LOC_PROT_ERR 12:WR_FLUSH_ERR"},
	{desc: "receive without local-write", recv: func(y *vend, r *qp.RecvWR) { r.SGEs[0].LKey = y.register(y.buf, 0).LKey },
		a: failing(cq.RemoteOperationError), b: "11:LOC_PROT_ERR 12:WR_FLUSH_ERR"},
	{desc: "long message, path MTU 4096 against 1024", path: func(a, b *qp.Path) { a.MTU = qp.MTU4096 },
		do: func(x, y *vend, wr *qp.SendWR) { wr.SGEs[0].Length = 1025 },
		a:  failing(cq.RemoteInvalidRequestError), b: "11:LOC_LEN_ERR 12:WR_FLUSH_ERR"},
	{desc: "long message, path MTU 256 against 1024", path: func(a, b *qp.Path) { a.MTU = qp.MTU256 },
		do: func(x, y *vend, wr *qp.SendWR) { wr.SGEs[0].Length = 1025 },
		a:  failing(cq.RemoteInvalidRequestError), b: "11:LOC_LEN_ERR 12:WR_FLUSH_ERR"},
}

// remote makes a one-sided request to the end's buffer.
func (e *vend) remote(op qp.Opcode, sges []qp.SGE) qp.SendWR {
	return qp.SendWR{Opcode: op, RemoteAddr: e.reg.Addr, RKey: e.reg.RKey, SGEs: sges}
}

// TestErrorMatrix: which cause gives which status, with messages cut and whole.
func TestErrorMatrix(t *testing.T) {
	for _, c := range errorCases {
		for _, segment := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/segment=%v", strings.ReplaceAll(c.desc, " ", "_"), segment), func(t *testing.T) {
				v := newNet(t, 1)
				set := func(cfg *Config) { cfg.Segment = segment }
				x, y := v.pairOf(v.add(set), v.add(set), 8192, c.path)
				r := qp.RecvWR{ID: 11, SGEs: []qp.SGE{y.sge(0, 4096)}}
				if c.recv != nil {
					c.recv(y, &r)
				}
				y.recv(r, qp.RecvWR{ID: 12, SGEs: []qp.SGE{y.sge(4096, 4096)}})
				good := y.remote(qp.Write, []qp.SGE{x.sge(0, 16)})
				bad := qp.SendWR{Opcode: qp.Send, SGEs: []qp.SGE{x.sge(0, 16)}}
				if c.do != nil {
					c.do(x, y, &bad)
				}
				wrs := []qp.SendWR{good, bad, good}
				for i := range wrs {
					wrs[i].ID, wrs[i].Flags = uint64(i+1), qp.Signaled
				}
				wrs[2].Flags = 0 // flushed ones are reported whether signaled or not
				x.send(wrs...)
				v.idle()
				wantBrief(t, "sender", x.poll(), c.a)
				b := y.poll()
				if c.b == "" { // the peer sees nothing of a local error
					if len(b) > 0 {
						t.Errorf("the peer was told: %s", brief(b))
					}
				} else {
					wantBrief(t, "receiver", b, c.b)
				}
				var events []string
				for _, e := range y.h.events {
					if e.Type != verbs.EventCommEstablished {
						events = append(events, e.Type.String())
					}
				}
				if got := strings.Join(events, " "); got != c.events {
					t.Errorf("events of the receiver: %q, want %q", got, c.events)
				}
				if s := x.q.Attr().State; s != qp.Err {
					t.Errorf("sender is in %v, want ERR", s)
				}
				// Later posts are flushed too, on both queues.
				x.send(qp.SendWR{ID: 4, Opcode: qp.Send})
				x.recv(qp.RecvWR{ID: 5})
				wantBrief(t, "posted in ERR", x.poll(), "4:WR_FLUSH_ERR 5:WR_FLUSH_ERR")
			})
		}
	}
}

func TestRNR(t *testing.T) {
	const timer = qp.RNRTimer(14) // 1.28 ms
	for _, c := range []struct {
		desc  string
		retry uint8
		none  bool
		after time.Duration // B posts its receive
		want  string
		naks  uint64
		took  time.Duration // at least, at most one timer more
	}{
		{desc: "no retry", none: true, want: "1:RNR_RETRY_EXC_ERR 2:WR_FLUSH_ERR", naks: 1},
		{desc: "3 retries", retry: 3, want: "1:RNR_RETRY_EXC_ERR 2:WR_FLUSH_ERR", naks: 4, took: 3 * timer.Duration()},
		{desc: "3 retries, receive in time", retry: 3, after: 3 * time.Millisecond, want: "1:SUCCESS 2:SUCCESS", naks: 3, took: 3 * timer.Duration()},
		{desc: "for ever", retry: 7, after: 50 * timer.Duration(), want: "1:SUCCESS 2:SUCCESS", naks: 50, took: 50 * timer.Duration()},
	} {
		for _, op := range []qp.Opcode{qp.Send, qp.WriteWithImm} {
			t.Run(c.desc+"/"+op.String(), func(t *testing.T) {
				v := newNet(t, 1)
				x, y := v.pairOf(v.add(nil), v.add(nil), 8192, func(a, b *qp.Path) {
					a.RNRRetry, a.NoRNRRetry, b.RNRTimer = c.retry, c.none, timer
				})
				wr := y.remote(op, []qp.SGE{x.sge(0, 3000)})
				wr.ID, wr.Flags = 1, qp.Signaled
				wr2 := wr
				wr2.ID = 2
				x.send(wr, wr2)
				if c.after > 0 {
					for v.now < c.after && v.step() {
					}
					y.recv(qp.RecvWR{ID: 11, SGEs: []qp.SGE{y.sge(0, 3000)}}, qp.RecvWR{ID: 12, SGEs: []qp.SGE{y.sge(4096, 3000)}})
				}
				for x.q.sq.una != x.q.sq.posted() && v.step() {
				}
				wantBrief(t, "sender", x.poll(), c.want)
				if v.now < c.took || v.now > c.took+2*timer.Duration() {
					t.Errorf("took %v, want %v or a little more", v.now, c.took)
				}
				sent, received := y.h.nic.Stats().RNRNaksSent, x.h.nic.Stats().RNRNaksReceived
				if sent != received || sent < c.naks || sent > c.naks+1 {
					t.Errorf("%d RNR NAKs sent, %d received, want %d", sent, received, c.naks)
				}
			})
		}
	}
}

// TestRetryExceeded: a peer that is gone. The error comes after all attempts: 8
// timeouts with retry count 7 (case C19).
func TestRetryExceeded(t *testing.T) {
	for _, c := range []struct {
		retry    uint8
		none     bool
		attempts int
	}{{7, false, 8}, {2, false, 3}, {0, true, 1}} {
		v := newNet(t, 1)
		x, y := v.pairOf(v.add(nil), v.add(nil), 8192, func(a, b *qp.Path) { a.RetryCount, a.NoRetry, a.AckTimeout = c.retry, c.none, 14 })
		v.filter = func(p *Packet) bool { return p.DGID != y.h.gid }
		wr := y.remote(qp.Write, []qp.SGE{x.sge(0, 10)})
		wr.ID = 9
		x.send(wr)
		v.idle()
		wantBrief(t, "sender", x.poll(), "9:RETRY_EXC_ERR")
		want := time.Duration(c.attempts) * qp.AckTimeout(14).Duration()
		if v.now < want || v.now > want+time.Microsecond {
			t.Errorf("%d retries took %v, want %v", c.retry, v.now, want)
		}
		if n := x.h.nic.Stats().PacketsSent; n != uint64(c.attempts) {
			t.Errorf("%d retries: %d packets, want %d", c.retry, n, c.attempts)
		}
	}
}

func TestBadResponse(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 8192, nil)
	v.filter = func(p *Packet) bool {
		if p.Op == OpReadRespFirst {
			p.Payload.n-- // a peer that counts wrong
		}
		return true
	}
	wr := y.remote(qp.Read, []qp.SGE{x.sge(0, 3000)})
	wr.ID = 1
	x.send(wr)
	v.idle()
	wantBrief(t, "sender", x.poll(), "1:BAD_RESP_ERR")
}

func TestCQOverflow(t *testing.T) {
	v := newNet(t, 1)
	x, y := v.pairOf(v.add(nil), v.add(nil), 8192, nil)
	small := y.h.nic.CreateCQ(4, func() {})
	told := 0
	small.notify = func() { told++ }
	q := y.newQP(qp.Caps{SendWR: 8, RecvWR: 16, SendSGE: 1, RecvSGE: 1}, small)
	y.q = q
	p := v.end(x.h, 8192, 64)
	v.join(p, y)
	for i := range 8 {
		y.recv(qp.RecvWR{ID: uint64(i), SGEs: []qp.SGE{y.sge(64*i, 64)}})
	}
	for range 5 {
		p.send(qp.SendWR{Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.sge(0, 8)}})
		v.idle()
	}
	var buf [16]cq.Completion
	if n := small.Poll(buf[:]); n != 4 || !small.Overflowed() || told != 1 {
		t.Errorf("%d completions, overflowed %v, told %d times; want 4, true, 1", n, small.Overflowed(), told)
	}
	if s := q.Attr().State; s != qp.Err {
		t.Errorf("queue pair of the lost CQ is in %v, want ERR", s)
	}
	types := y.h.eventTypes()
	for _, want := range []string{"CQ_ERR", "QP_FATAL"} {
		if !slices.Contains(types, want) {
			t.Errorf("events %v lack %v", types, want)
		}
	}
	if s := x.q.Attr().State; s != qp.RTS {
		t.Errorf("a queue pair of another CQ is in %v", s)
	}
}
