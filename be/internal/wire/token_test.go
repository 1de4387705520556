package wire

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzToken(f *testing.F) {
	b := make([]byte, TokenLen)
	(&Token{Socket: 1, Transfer: 0x20003, RKey: 7, Addr: 1 << 40, Length: 1 << 20}).Put(b)
	f.Add(bytes.Clone(b))
	f.Add(b[:TokenLen-1])
	b[12] = 1
	f.Add(bytes.Clone(b))
	f.Add(bytes.Repeat([]byte{0xff}, TokenLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		var k Token
		if err := k.Parse(b); err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Fatalf("error %v", err)
			}
			return
		}
		out := bytes.Repeat([]byte{0xaa}, TokenLen)
		k.Put(out)
		if !bytes.Equal(out, b) {
			t.Fatalf("% x decodes and encodes to % x", b, out)
		}
	})
}
