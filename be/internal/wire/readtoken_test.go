package wire

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzReadToken(f *testing.F) {
	b := make([]byte, ReadTokenLen)
	(&ReadToken{Node: [16]byte{1, 15: 2}, RKey: 7, Addr: 1 << 40, Length: 1 << 20}).Put(b)
	f.Add(bytes.Clone(b))
	f.Add(b[:ReadTokenLen-1])
	b[36] = 1
	f.Add(bytes.Clone(b))
	f.Add(bytes.Repeat([]byte{0xff}, ReadTokenLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		var k ReadToken
		if err := k.Parse(b); err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Fatalf("error %v", err)
			}
			return
		}
		out := bytes.Repeat([]byte{0xaa}, ReadTokenLen)
		k.Put(out)
		if !bytes.Equal(out, b) {
			t.Fatalf("% x decodes and encodes to % x", b, out)
		}
	})
}
