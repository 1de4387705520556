package be

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

func frameOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func goodHello() hello {
	return hello{
		Protocol: protocolName, MinVersion: 1, MaxVersion: 1, Incarnation: newIncarnation(), Device: "d", Port: 1, LinkLayer: "Ethernet",
		GIDType: "RoCE v2", MTU: 4096, RecvDepth: 64, Eager: 8192, Fragment: 65536, MaxMessage: 1 << 30, Backlog: 8, MaxSockets: 9, MaxReads: 1,
		Features: []string{},
	}
}

// FuzzHello: what a stranger sends first is refused or yields values within the
// limits of both sides, and is the same after another round.
func FuzzHello(f *testing.F) {
	h := goodHello()
	f.Add(frameOf(h))
	f.Add(frameOf(ready{Incarnation: h.Incarnation}))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{2, 0, 0, 0, '{', '}'})
	f.Add(frameOf(map[string]any{"protocol": protocolName, "min_version": -1, "max_version": 1 << 40, "psn": -5}))
	own := goodHello()
	f.Fuzz(func(t *testing.T, b []byte) {
		var h hello
		if decodeFrame(bytes.NewReader(b), &h) != nil || h.checkVersion() != nil {
			return
		}
		a, err := h.agree(&own, verbs.LinkEthernet)
		if err != nil {
			return
		}
		if a.eager < minEager || a.eager > own.Eager || a.fragment < 256 || a.fragment > own.Fragment || a.message < 1 || int64(a.message) > own.MaxMessage ||
			a.mtu.Bytes() == 0 || a.sockets < 1 || a.reads < 0 || h.RecvDepth < minRecvDepth || h.Backlog < 1 {
			t.Fatalf("agreed on %+v from %+v", a, h)
		}
		var again hello
		if err := decodeFrame(bytes.NewReader(frameOf(h)), &again); err != nil || !reflect.DeepEqual(h, again) {
			t.Fatalf("%+v became %+v: %v", h, again, err)
		}
	})
}

func TestEveryTruncatedHelloFails(t *testing.T) {
	b := frameOf(goodHello())
	for n := range b {
		var h hello
		if err := decodeFrame(bytes.NewReader(b[:n]), &h); err == nil {
			t.Fatalf("%d of %d bytes were taken", n, len(b))
		}
	}
}

func TestIncarnationText(t *testing.T) {
	id := newIncarnation()
	var back incarnation
	if err := back.UnmarshalText([]byte(id.String())); err != nil || back != id {
		t.Errorf("%v came back as %v: %v", id, back, err)
	}
	for _, s := range []string{"", "12", strings.Repeat("g", 32), strings.Repeat("1", 31), strings.Repeat("1", 33), strings.Repeat("1", 1000)} {
		if err := back.UnmarshalText([]byte(s)); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
	if other := newIncarnation(); id.less(id) || other == id || other.less(id) == id.less(other) {
		t.Error("incarnations do not order or differ")
	}
	if !errors.Is((&PeerError{Err: ErrPeerLost}), ErrPeerLost) {
		t.Error("a PeerError does not unwrap")
	}
}
