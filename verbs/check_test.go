package verbs

import (
	"errors"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// want checks an error: nil for "", else one that wraps target and contains text.
func want(t *testing.T, desc string, err, target error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("%s: %v", desc, err)
	case text != "" && (!errors.Is(err, target) || !strings.Contains(err.Error(), text)):
		t.Errorf("%s: error %v, want %q", desc, err, text)
	}
}

func TestCheckCQ(t *testing.T) {
	attr := DeviceAttr{MaxCQE: 100, CompVectors: 2}
	for _, tt := range []struct {
		desc string
		c    CQConfig
		text string
	}{
		{"smallest", CQConfig{Entries: 1}, ""},
		{"largest", CQConfig{Entries: 100, Vector: 1}, ""},
		{"no entries", CQConfig{}, "0 CQ entries, must be 1 to 100"},
		{"negative", CQConfig{Entries: -1}, "-1 CQ entries"},
		{"one too many", CQConfig{Entries: 101}, "101 CQ entries, must be 1 to 100"},
		{"vector too high", CQConfig{Entries: 1, Vector: 2}, "completion vector 2, must be 0 to 1"},
		{"negative vector", CQConfig{Entries: 1, Vector: -1}, "completion vector -1"},
	} {
		want(t, tt.desc, attr.CheckCQ(tt.c), ErrLimit, tt.text)
	}
	none := DeviceAttr{MaxCQE: 1}
	want(t, "device without vectors", none.CheckCQ(CQConfig{Entries: 1}), nil, "")
}

// aCQ is a CQ that nothing is asked of.
type aCQ struct{ cq.CQ }

func TestCheckQP(t *testing.T) {
	attr := DeviceAttr{MaxQPWR: 16, MaxSGE: 4, MaxInline: 64}
	good := QPConfig{SendCQ: aCQ{}, RecvCQ: aCQ{}, Caps: qp.Caps{SendWR: 16, RecvWR: 16, SendSGE: 4, RecvSGE: 4, Inline: 64}}
	for _, tt := range []struct {
		desc   string
		change func(*QPConfig)
		text   string
	}{
		{"largest", func(*QPConfig) {}, ""},
		{"smallest", func(c *QPConfig) { c.Caps = qp.Caps{} }, ""},
		{"no send CQ", func(c *QPConfig) { c.SendCQ = nil }, "needs a send and a receive CQ"},
		{"no receive CQ", func(c *QPConfig) { c.RecvCQ = nil }, "needs a send and a receive CQ"},
		{"sends", func(c *QPConfig) { c.Caps.SendWR = 17 }, "17 send requests, must be 0 to 16"},
		{"receives", func(c *QPConfig) { c.Caps.RecvWR = -1 }, "-1 receive requests"},
		{"send segments", func(c *QPConfig) { c.Caps.SendSGE = 5 }, "5 segments a send request, must be 0 to 4"},
		{"receive segments", func(c *QPConfig) { c.Caps.RecvSGE = 5 }, "5 segments a receive request"},
		{"inline", func(c *QPConfig) { c.Caps.Inline = 65 }, "65 inline bytes, must be 0 to 64"},
		{"negative inline", func(c *QPConfig) { c.Caps.Inline = -1 }, "-1 inline bytes"},
	} {
		c := good
		tt.change(&c)
		want(t, tt.desc, attr.CheckQP(c), ErrLimit, tt.text)
	}
	own := good
	own.OwnDoorbell = true
	want(t, "own doorbell without such", attr.CheckQP(own), ErrUnsupported, "thread domain")
	attr.OwnDoorbells = true
	want(t, "own doorbell", attr.CheckQP(own), nil, "")
	attr.MaxInline = 0 // a device that does not tell
	good.Caps.Inline = 1 << 10
	want(t, "inline, limit not told", attr.CheckQP(good), nil, "")
	good.Caps.Inline = 1 << 40
	want(t, "absurd inline, limit not told", attr.CheckQP(good), ErrLimit, "inline bytes")
}

func TestCheckMR(t *testing.T) {
	attr := DeviceAttr{MaxMRSize: 4096}
	want(t, "largest", attr.CheckMR(make([]byte, 4096), mr.LocalWrite|mr.RemoteWrite), nil, "")
	want(t, "empty", attr.CheckMR(nil, 0), ErrLimit, "0 bytes")
	want(t, "too long", attr.CheckMR(make([]byte, 4097), 0), ErrLimit, "4097 bytes, at most 4096: split it")
	want(t, "bad access", attr.CheckMR(make([]byte, 1), mr.RemoteAtomic), mr.ErrAccess, "needs local-write too")
	want(t, "on demand without", attr.CheckMR(make([]byte, 1), mr.OnDemand), ErrUnsupported, "on-demand paging")
	attr.OnDemand.Supported = true
	want(t, "on demand", attr.CheckMR(make([]byte, 1), mr.OnDemand), nil, "")
	for text, b := range map[string]DMABuf{"": {Offset: 8191, Length: 4096, Addr: 4095}, "0 bytes": {}, "at most 4096": {Length: 4097},
		"different places": {Length: 1, Offset: 4097, Addr: 4098}, "addressed from": {Length: 4096, Addr: ^uint64(0) &^ 4095}} {
		want(t, "dmabuf "+text, attr.CheckDMABuf(b, 0), ErrLimit, text)
	}
	attr.MaxMRSize = 0 // not told
	want(t, "limit not told", attr.CheckMR(make([]byte, 1<<20), 0), nil, "")
}

func TestCheckSRQ(t *testing.T) {
	attr := DeviceAttr{MaxSRQ: 1, MaxSRQWR: 16, MaxSRQSGE: 4}
	for _, tt := range []struct {
		desc string
		c    qp.SRQCaps
		text string
	}{
		{"smallest", qp.SRQCaps{RecvWR: 1}, ""},
		{"largest", qp.SRQCaps{RecvWR: 16, RecvSGE: 4}, ""},
		{"no requests", qp.SRQCaps{RecvSGE: 1}, "0 shared receive requests, must be 1 to 16"},
		{"requests", qp.SRQCaps{RecvWR: 17}, "17 shared receive requests"},
		{"segments", qp.SRQCaps{RecvWR: 1, RecvSGE: 5}, "5 segments a shared receive request, must be 0 to 4"},
	} {
		want(t, tt.desc, attr.CheckSRQ(SRQConfig{Caps: tt.c}), ErrLimit, tt.text)
	}
	none := DeviceAttr{MaxSRQWR: 16}
	want(t, "device without", none.CheckSRQ(SRQConfig{Caps: qp.SRQCaps{RecvWR: 1}}), ErrUnsupported, "shared receive queues: not supported by the device")
	shared := QPConfig{SendCQ: aCQ{}, RecvCQ: aCQ{}, SRQ: aSRQ{}, Caps: qp.Caps{SendWR: 1, RecvWR: 99, RecvSGE: 99}}
	device := DeviceAttr{MaxQPWR: 1}
	want(t, "receives of a queue pair with a shared queue", device.CheckQP(shared), nil, "")
}

// aSRQ is a shared receive queue that nothing is asked of.
type aSRQ struct{ qp.SRQ }
