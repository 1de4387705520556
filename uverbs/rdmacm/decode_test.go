//go:build linux

package rdmacm

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// An event as a kernel of 6.1 gives it: of a request, with room for 56 bytes.
func sampleEvent() []byte {
	b := make([]byte, eventSize)
	eventUID.Put(b, 7)
	eventID.Put(b, 3)
	eventEvent.Put(b, uint32(ConnectRequest))
	p := ConnParam{QPNum: 0x123456, Private: append([]byte("\x02hi"), make([]byte, 53)...), MaxReads: 1, MaxDestReads: 2, RetryCount: 7, RNRRetry: 6}
	p.put(eventConn.In(b))
	return b
}

// Whatever the bytes, decoding neither panics nor makes anything up, and what was read
// can be written again.
func FuzzEvent(f *testing.F) {
	f.Add(sampleEvent())
	f.Add(sampleEvent()[:int(eventConn)+connParamSize])
	f.Add(sampleEvent()[:20])
	f.Add(bytes.Repeat([]byte{0xff}, int(eventSize)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEvent(b)
		if err != nil {
			if len(b) >= int(eventSize) {
				t.Errorf("%d bytes: %v", len(b), err)
			}
			return
		}
		again := make([]byte, eventSize)
		eventUID.Put(again, e.uid)
		eventID.Put(again, e.handle)
		eventEvent.Put(again, uint32(e.Type))
		eventStatus.Put(again, uint32(e.Status))
		e.Param.put(eventConn.In(again))
		e2, err := decodeEvent(again)
		if d := cmp.Diff(e.Event, e2.Event); d != "" || err != nil || e.uid != e2.uid || e.handle != e2.handle {
			t.Errorf("read, written and read again: %v %s", err, d)
		}
		_, _ = e.Type.String(), e.Err()
		if data, err := Unframe(e.Param.Private); err == nil && len(data) > len(e.Param.Private) {
			t.Errorf("%d bytes of %d", len(data), len(e.Param.Private))
		}
	})
}

// Answers of a kernel to the two queries.
func FuzzAnswers(f *testing.F) {
	b := make([]byte, routeSize)
	putAddr(routeSrc.In(b), netip.MustParseAddrPort("10.9.0.1:7174"))
	putAddr(routeDst.In(b), netip.MustParseAddrPort("[fe80::1%3]:7174"))
	f.Add(b)
	f.Add(b[:routeSize-1])
	f.Add(bytes.Repeat([]byte{0xff}, routeSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeRoute(b); err == nil {
			for _, a := range []netip.AddrPort{r.local, r.remote} {
				again := make([]byte, sockaddrSize)
				if err := putAddr(again, a); err != nil {
					t.Fatalf("%v: %v", a, err)
				}
				if got := getAddr(again); a.IsValid() && got != netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) {
					t.Errorf("%v, written and read again, is %v", a, got)
				}
			}
		}
		a, mask, err := decodeAttr(b, mr.LocalWrite)
		if err == nil && (mask&^knownAttrs != 0 || a.Access != mr.LocalWrite || a.RNRTimer == 0 || a.SendPSN > qp.PSNMask || a.RecvPSN > qp.PSNMask) {
			t.Errorf("attributes %+v, mask %v", a, mask)
		}
	})
}

func TestFrame(t *testing.T) {
	for n := range 256 {
		data := bytes.Repeat([]byte{0xee}, n)
		b, err := Frame(data)
		must(t, err)
		got, err := Unframe(append(b, make([]byte, 9)...))
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes: %x, %v", n, got, err)
		}
	}
	if _, err := Frame(make([]byte, 256)); err == nil {
		t.Error("256 bytes can be framed")
	}
	for name, b := range map[string][]byte{"too long": {3, 1, 2}, "goes on": {1, 'x', 0, 1}} {
		if got, err := Unframe(b); err == nil {
			t.Errorf("%s: %x", name, got)
		}
	}
	if got, err := Unframe(nil); got != nil || err != nil {
		t.Errorf("nothing: %x, %v", got, err)
	}
}

func TestEventErrors(t *testing.T) {
	for _, tt := range []struct {
		e    Event
		want error
		text string
	}{
		{Event{Type: Established}, nil, ""},
		{Event{Type: AddrError, Status: -int32(syscall.ETIMEDOUT)}, syscall.ETIMEDOUT, "address not resolved: connection timed out"},
		{Event{Type: Rejected, Status: 8}, ReasonInvalidServiceID, "rejected by the peer: nobody listens on that port (reason 8)"},
		{Event{Type: Rejected, Status: 28}, ReasonConsumer, "by the application (reason 28)"},
		{Event{Type: Rejected, Status: 34}, Reason(34), "rejected by the peer: reason 34"},
		{Event{Type: Rejected, Status: -int32(syscall.ECONNREFUSED)}, syscall.ECONNREFUSED, "rejected by the peer: connection refused"}, // iWARP
		{Event{Type: Unreachable}, errNoStatus, "peer unreachable: the kernel tells no reason"},
		{Event{Type: ConnectError, Status: 5}, nil, "connection not made: status 5"},
		{Event{Type: RouteError, Status: -1 << 31}, nil, "route not resolved: errno 2147483648"},
		{Event{Type: 99, Status: -5}, syscall.EIO, "event 99: input/output error"},
	} {
		err := tt.e.Err()
		if tt.text == "" && err != nil || tt.text != "" && (err == nil || !strings.Contains(err.Error(), tt.text)) || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%+v: error %v", tt.e, err)
		}
	}
	for r := range Reason(40) {
		if s := r.Error(); !strings.Contains(s, "reason") {
			t.Errorf("reason %d is %q", r, s)
		}
	}
}

// Each errno that a command can end with gives a remedy, and what others match.
func TestRemedies(t *testing.T) {
	for errno, also := range map[syscall.Errno]error{
		syscall.EADDRINUSE: nil, syscall.EADDRNOTAVAIL: nil, syscall.ENODEV: nil, syscall.EACCES: nil, syscall.EPERM: nil, syscall.ENETUNREACH: nil,
		syscall.EHOSTUNREACH: nil, syscall.ETIMEDOUT: nil, syscall.ECONNREFUSED: nil, syscall.EINVAL: nil, syscall.ENOTCONN: nil,
		syscall.ENOMEM: nil, syscall.ENOSPC: nil, syscall.ENODATA: nil, syscall.ENOSYS: verbs.ErrUnsupported, syscall.EIO: verbs.ErrDeviceLost, syscall.ENXIO: verbs.ErrDeviceLost,
		syscall.ENOENT: verbs.ErrClosed, syscall.EBADF: verbs.ErrClosed,
	} {
		err := fail("listen", "10.9.0.1:1", errno)
		var op *verbs.OpError
		if !errors.Is(err, errno) || also != nil && !errors.Is(err, also) || !errors.As(err, &op) || op.Op != "listen" || (op.Remedy == "") != errors.Is(also, verbs.ErrClosed) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for errno, text := range map[syscall.Errno]string{
		syscall.ENOENT: "`modprobe rdma_ucm`", syscall.ENXIO: "`modprobe rdma_ucm`", syscall.EACCES: "let the user read and write",
		syscall.EMFILE: "RLIMIT_NOFILE",
	} {
		s := newFake(t).system()
		s.OpenNode = func(string) (int, error) { return -1, errno }
		for _, open := range []func() error{
			func() error { _, err := s.Open(); return err },
			func() error { _, err := s.Listen(listenAddr); return err },
			func() error { _, err := s.Dial(t.Context(), listenAddr, Options{}); return err },
		} {
			if err := open(); !errors.Is(err, errno) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "infiniband/rdma_cm") {
				t.Errorf("%v: %v", errno, err)
			}
			if err := open(); errors.Is(err, verbs.ErrUnsupported) != strings.Contains(text, "modprobe") {
				t.Errorf("%v: unsupported or not: %v", errno, err)
			}
		}
	}
}
