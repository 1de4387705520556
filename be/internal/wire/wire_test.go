package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// encode builds the message that a decoded one stands for.
func encode(h Header, body []byte) []byte {
	b := make([]byte, HeaderLen, HeaderLen+len(body))
	h.Put(b)
	return append(b, body...)
}

func TestGoldenBytes(t *testing.T) {
	body := make([]byte, MaxControl)
	for _, tt := range []struct {
		desc string
		h    Header
		body []byte
		want string
	}{
		{"credit", Header{Type: Credit, Granted: 0x01020304}, nil, "0a001000" + "04030201" + "00000000" + "00000000"},
		{"rts", Header{Type: RTS, Granted: 1, Socket: 3, Sequence: 7}, body[:PutU64(body, 1<<20)], "05001000" + "01000000" + "03000000" + "07000000" + "0000100000000000"},
	} {
		if got := hex.EncodeToString(encode(tt.h, tt.body)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.desc, got, tt.want)
		}
	}
	pack := encode(Header{Type: Data, Granted: 1, Socket: 3, Sequence: 7}, make([]byte, 2*PartLen))
	ToPack(pack, 5)
	AddPart(pack, 1, Part{Socket: 0x0a0b, Sequence: 9, Length: 2})
	if got, want := hex.EncodeToString(pack), "13001000"+"01000000"+"00000000"+"02000000"+"03000000"+"07000000"+"05000000"+"0b0a0000"+"09000000"+"02000000"; got != want {
		t.Errorf("pack: %s, want %s", got, want)
	}
	g := Grant{Transfer: 0x00020001, Addr: 0x1122334455667788, RKey: 0xaabbccdd}
	n := g.Put(body)
	if got, want := hex.EncodeToString(body[:n]), "01000200"+"8877665544332211"+"ddccbbaa"; got != want {
		t.Errorf("CTS body: %s, want %s", got, want)
	}
}

func TestEveryTypeHasNameAndRefusesWrongBody(t *testing.T) {
	for typ := Type(1); typ < endType; typ++ {
		if typ.String() == "" || typ.String() == "unknown" {
			t.Errorf("type %d has no name", typ)
		}
		b := encode(Header{Type: typ}, nil)
		var h Header
		want := bodyLen[typ]
		for n := range MaxControl {
			err := h.Parse(b, n)
			if ok := want < 0 || n == want; ok != (err == nil) {
				t.Errorf("%v with a body of %d bytes: %v", typ, n, err)
			}
		}
		for n := range HeaderLen {
			if err := h.Parse(b[:n], 0); !errors.Is(err, ErrProtocol) {
				t.Errorf("%v cut at %d: %v", typ, n, err)
			}
		}
	}
}

func TestHeaderErrorsNameTheField(t *testing.T) {
	for _, tt := range []struct {
		at   int
		val  byte
		want string
	}{{0, 0, "type"}, {0, 0xff, "type"}, {1, 1, "flags"}, {2, 15, "header length"}, {3, 1, "reserved"}} {
		b := encode(Header{Type: Accept}, nil)
		b[tt.at] = tt.val
		var h Header
		err := h.Parse(b, 0)
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("byte %d = %d: %v, want an error about %q", tt.at, tt.val, err, tt.want)
		}
	}
}

func TestTransferRoundTrip(t *testing.T) {
	for _, i := range []int{0, 1, MaxTransfers - 1} {
		for _, g := range []uint16{0, 1, 0xffff} {
			if gi, gg := SplitTransfer(Transfer(i, g)); gi != i || gg != g {
				t.Errorf("transfer (%d, %d) came back as (%d, %d)", i, g, gi, gg)
			}
		}
	}
}

func packTable(parts ...Part) []byte {
	b := make([]byte, HeaderLen+len(parts)*PartLen)
	for i := range parts {
		parts[i].Put(b, i)
	}
	return b[HeaderLen:]
}

// TestPackErrorsNameTheField: what is not a whole pack is refused, and each cut of one.
func TestPackErrorsNameTheField(t *testing.T) {
	two := append(packTable(Part{1, 0, 3}, Part{2, 4, 2}), "abcde"...)
	for _, tt := range []struct {
		h    Header
		body []byte
		want string
	}{
		{Header{Sequence: 0}, nil, "parts"},
		{Header{Sequence: 1}, packTable(Part{1, 0, 0}), "parts"},
		{Header{Sequence: MaxParts + 1}, packTable(make([]Part, MaxParts+1)...), "parts"},
		{Header{Sequence: 1<<32 - 1}, two, "parts"},
		{Header{Sequence: 2, Socket: 1}, two, "socket"},
		{Header{Sequence: 3}, two, "body length"},
		{Header{Sequence: 2}, append(two, 0), "sum of lengths"},
		{Header{Sequence: 2}, packTable(Part{1, 0, 1<<32 - 1}, Part{2, 4, 1}), "sum of lengths of PACK is 4294967296"},
		{Header{Sequence: 2}, two, ""},
	} {
		tt.h.Type = Pack
		_, payload, err := tt.h.ParsePack(tt.body)
		if tt.want == "" && (err != nil || string(payload) != "abcde") || tt.want != "" && (!errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d parts in %d bytes: %v, want an error about %q", tt.h.Sequence, len(tt.body), err, tt.want)
		}
	}
	h := Header{Type: Pack, Sequence: 2}
	for n := range two {
		if _, _, err := h.ParsePack(two[:n:n]); !errors.Is(err, ErrProtocol) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if HeaderLen+MaxParts*PartLen > MaxControl {
		t.Error("a pack of MaxParts has no place in a control message's")
	}
}

func FuzzMessage(f *testing.F) {
	body := make([]byte, MaxControl)
	f.Add(encode(Header{Type: Open, Socket: 1}, body[:PutOpen(body, 1, "ps")]))
	f.Add(encode(Header{Type: Open, Flags: FlagUnordered, Socket: 1}, body[:PutOpen(body, 1, "ps")]))
	f.Add(encode(Header{Type: Refuse, Socket: 1}, body[:PutRefuse(body, ReasonBusy, "full")]))
	f.Add(encode(Header{Type: Data, Socket: 1}, []byte("hello")))
	f.Add(encode(Header{Type: RTS, Socket: 1, Sequence: 9}, body[:PutU64(body, 1<<31)]))
	f.Add(encode(Header{Type: RTS, Flags: FlagGet, Socket: 1}, body[:(&Offer{1 << 20, 2, 3}).Put(body)]))
	f.Add(encode(Header{Type: Fin, Socket: 1, Sequence: 4}, body[:PutPair(body, 0, 1)]))
	f.Add(encode(Header{Type: CTS, Socket: 1}, body[:(&Grant{1, 2, 3}).Put(body)]))
	f.Add(encode(Header{Type: GoAway}, body[:PutPair(body, 5, 3)]))
	f.Add(encode(Header{Type: Close, Socket: 2}, body[:PutU32(body, 0)]))
	f.Add(encode(Header{Type: Pack, Sequence: 2}, append(body[:copy(body, packTable(Part{1, 0, 3}, Part{2, 4, 0}))], "abc"...)))
	f.Add(encode(Header{Type: Pack, Sequence: 2}, packTable(Part{1, 0, 1<<32 - 1}, Part{2, 4, 1})))
	f.Add(encode(Header{Type: Pack, Sequence: 1<<32 - 1}, packTable(Part{1, 0, 0})))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Header
		bodyBytes := max(len(b)-HeaderLen, 0)
		if h.Parse(b, bodyBytes) != nil {
			return
		}
		body := b[HeaderLen:]
		out := make([]byte, 4+MaxService+len(body))
		n := 0
		switch h.Type {
		case Open:
			l, s, err := ParseOpen(body)
			if err != nil {
				return
			}
			n = PutOpen(out, l, s)
		case Refuse:
			r, s, err := ParseRefuse(body)
			if err != nil {
				return
			}
			n = PutRefuse(out, r, s)
		case RTS, Ping, Pong:
			if h.Type == RTS && h.Flags&FlagGet != 0 {
				o := ParseOffer(body)
				n = o.Put(out)
				break
			}
			n = PutU64(out, U64(body))
		case CTS:
			g := ParseGrant(body)
			n = g.Put(out)
		case Fin, GoAway:
			v, w := Pair(body)
			n = PutPair(out, v, w)
		case Reject, Close, Closed:
			n = PutU32(out, U32(body))
		case Data:
			n = copy(out, body)
		case Pack:
			table, payload, err := h.ParsePack(body)
			if err != nil {
				return
			}
			if n = int(h.Sequence); n < 2 || n > MaxParts || len(table) != n*PartLen {
				t.Fatalf("%d parts in a table of %d bytes", n, len(table))
			}
			first := PartAt(table, 0)
			again := encode(Header{Type: Data, Granted: h.Granted, Socket: first.Socket, Sequence: first.Sequence}, make([]byte, len(table)))
			ToPack(again, int(first.Length))
			for i := 1; i < n; i++ {
				AddPart(again, i, PartAt(table, i))
			}
			if again = append(again, payload...); !bytes.Equal(again, b) {
				t.Fatalf("% x decodes and encodes to % x", b, again)
			}
			return
		}
		if got := encode(h, out[:n]); !bytes.Equal(got, b) {
			t.Fatalf("% x decodes and encodes to % x", b, got)
		}
	})
}
