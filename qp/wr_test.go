package qp

import (
	"testing"

	"github.com/byteexpress/byteexpress/mr"
)

func TestSendWRCheck(t *testing.T) {
	caps := Caps{SendWR: 8, SendSGE: 2, Inline: 16}
	sges := func(lengths ...uint32) (s []SGE) {
		for _, n := range lengths {
			s = append(s, SGE{Length: n})
		}
		return s
	}
	for _, tt := range []struct {
		desc string
		wr   SendWR
		want error
	}{
		{"empty SEND", SendWR{Opcode: Send}, nil},
		{"as many segments as asked for", SendWR{Opcode: Write, SGEs: sges(1, 2)}, nil},
		{"one segment too many", SendWR{Opcode: Write, SGEs: sges(1, 2, 3)}, ErrTooManySGEs},
		{"inline as long as asked for", SendWR{Opcode: Send, Flags: Inline, Inline: make([]byte, 16)}, nil},
		{"inline of nothing", SendWR{Opcode: WriteWithImm, Flags: Inline}, nil},
		{"inline too long", SendWR{Opcode: Send, Flags: Inline, Inline: make([]byte, 17)}, ErrInlineTooLong},
		{"inline with segments", SendWR{Opcode: Send, Flags: Inline, Inline: make([]byte, 1), SGEs: sges(1)}, ErrInlineUse},
		{"inline READ", SendWR{Opcode: Read, Flags: Inline}, ErrInlineUse},
		{"inline atomic", SendWR{Opcode: FetchAdd, Flags: Inline, Inline: make([]byte, 8)}, ErrInlineUse},
		{"inline bytes without the flag", SendWR{Opcode: Send, Inline: make([]byte, 99)}, nil},
		{"longest message", SendWR{Opcode: Send, SGEs: sges(1<<31-1, 1)}, nil},
		{"too long by one", SendWR{Opcode: Send, SGEs: sges(1<<31-1, 2)}, ErrMessageTooLong},
		{"too long, past 2^32", SendWR{Opcode: Send, SGEs: sges(1<<32-1, 1<<32-1)}, ErrMessageTooLong},
		{"unknown opcode", SendWR{Opcode: FetchAdd + 1}, ErrOpcode},
		{"unknown opcode, inline", SendWR{Opcode: 255, Flags: Inline}, ErrOpcode},
		{"atomic", SendWR{Opcode: CompareSwap, RemoteAddr: 8, SGEs: sges(8)}, nil},
		{"atomic into two halves", SendWR{Opcode: FetchAdd, RemoteAddr: 16, SGEs: sges(4, 4)}, nil},
		{"atomic without a result", SendWR{Opcode: CompareSwap, RemoteAddr: 8}, ErrAtomic},
		{"atomic with 16 bytes", SendWR{Opcode: FetchAdd, RemoteAddr: 8, SGEs: sges(16)}, ErrAtomic},
		{"atomic at a misaligned address", SendWR{Opcode: FetchAdd, RemoteAddr: 12, SGEs: sges(8)}, ErrAtomic},
	} {
		if got := tt.wr.Check(&caps); got != tt.want { // the sentinel itself, unwrapped
			t.Errorf("%s: %v, want %v", tt.desc, got, tt.want)
		}
	}
}

func TestWindowWRCheck(t *testing.T) {
	caps := Caps{SendWR: 8, SendSGE: 2, Inline: 16, Windows: true}
	bind := func(change func(*Bind)) *Bind {
		b := &Bind{Region: 1, Addr: 4096, Length: 8, Access: mr.RemoteRead | mr.RemoteWrite | mr.RemoteAtomic, RKey: 0x1235}
		change(b)
		return b
	}
	good := bind(func(*Bind) {})
	for _, tt := range []struct {
		desc string
		wr   SendWR
		want error
	}{
		{"bind", SendWR{Opcode: BindMW, RKey: 0x1234, Bind: good}, nil},
		{"invalidate", SendWR{Opcode: LocalInv, RKey: 0x1234}, nil},
		{"send with invalidate", SendWR{Opcode: SendWithInv, RKey: 0x1234, SGEs: make([]SGE, 2)}, nil},
		{"send with invalidate, inline", SendWR{Opcode: SendWithInv, Flags: Inline, Inline: make([]byte, 16)}, nil},
		{"send with too many segments", SendWR{Opcode: SendWithInv, SGEs: make([]SGE, 3)}, ErrTooManySGEs},
		{"bind to nothing", SendWR{Opcode: BindMW, RKey: 0x1234}, ErrBind},
		{"bind with a segment", SendWR{Opcode: BindMW, RKey: 0x1234, Bind: good, SGEs: make([]SGE, 1)}, ErrBind},
		{"bind inline", SendWR{Opcode: BindMW, RKey: 0x1234, Bind: good, Flags: Inline}, ErrBind},
		{"invalidate with a segment", SendWR{Opcode: LocalInv, SGEs: make([]SGE, 1)}, ErrBind},
		{"same key", SendWR{Opcode: BindMW, RKey: 0x1235, Bind: good}, ErrBind},
		{"another window's key", SendWR{Opcode: BindMW, RKey: 0x1334, Bind: good}, ErrBind},
		{"no bytes", SendWR{Opcode: BindMW, RKey: 0x1234, Bind: bind(func(b *Bind) { b.Length = 0 })}, ErrBind},
		{"local access", SendWR{Opcode: BindMW, RKey: 0x1234, Bind: bind(func(b *Bind) { b.Access |= mr.LocalWrite })}, ErrBind},
		{"unknown", SendWR{Opcode: SendWithInv + 1}, ErrOpcode},
	} {
		if got := tt.wr.Check(&caps); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.desc, got, tt.want)
		}
		without := caps
		without.Windows = false
		if got := tt.wr.Check(&without); got != ErrOpcode {
			t.Errorf("%s on a queue pair without windows: %v", tt.desc, got)
		}
	}
}

func TestRecvWRCheck(t *testing.T) {
	caps := Caps{RecvWR: 8, RecvSGE: 1}
	for _, tt := range []struct {
		desc string
		wr   RecvWR
		want error
	}{
		{"without memory", RecvWR{}, nil},
		{"one segment", RecvWR{SGEs: make([]SGE, 1)}, nil},
		{"one segment too many", RecvWR{SGEs: make([]SGE, 2)}, ErrTooManySGEs},
		{"longest", RecvWR{SGEs: []SGE{{Length: 1 << 31}}}, nil},
		{"too long", RecvWR{SGEs: []SGE{{Length: 1<<31 + 1}}}, ErrMessageTooLong},
	} {
		if got := tt.wr.Check(&caps); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.desc, got, tt.want)
		}
	}
}

func TestLength(t *testing.T) {
	sges := []SGE{{Length: 1<<32 - 1}, {Length: 1<<32 - 1}, {Length: 3}}
	const sum = 1<<33 + 1
	s, r := SendWR{SGEs: sges, Inline: make([]byte, 5)}, RecvWR{SGEs: sges}
	if s.Length() != sum || r.Length() != sum {
		t.Errorf("lengths %d and %d, want %d", s.Length(), r.Length(), uint64(sum))
	}
	s.Flags = Inline
	if s.Length() != 5 {
		t.Errorf("inline length %d, want 5", s.Length())
	}
}

// Checks run on the data path: they allocate nothing, whatever they find.
func TestCheckNoAllocs(t *testing.T) {
	caps := Caps{SendSGE: 1, RecvSGE: 1}
	good, bad := SendWR{Opcode: Write, SGEs: make([]SGE, 1)}, SendWR{Opcode: 99}
	recv := RecvWR{SGEs: make([]SGE, 2)}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = good.Check(&caps), bad.Check(&caps), recv.Check(&caps) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSendWRCheck(b *testing.B) {
	caps := Caps{SendSGE: 4}
	wr := SendWR{Opcode: Write, SGEs: make([]SGE, 2)}
	for b.Loop() {
		if wr.Check(&caps) != nil {
			b.Fatal("refused")
		}
	}
}
