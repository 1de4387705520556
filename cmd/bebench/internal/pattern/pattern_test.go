package pattern

import "testing"

func TestFillCheck(t *testing.T) {
	b := make([]byte, 100)
	for n := range len(b) + 1 {
		clear(b)
		Fill(b[:n], 5)
		if bad := Check(b[:n], 5); bad != -1 {
			t.Fatalf("%d bytes: byte %d is wrong", n, bad)
		}
		for i := range n {
			b[i] ^= 0x40
			if bad := Check(b[:n], 5); bad != i {
				t.Fatalf("%d bytes, byte %d changed: Check = %d", n, i, bad)
			}
			b[i] ^= 0x40
		}
	}
}

func TestCheckSeesOtherMessages(t *testing.T) {
	b := make([]byte, 4096)
	Fill(b, Seed(1, 2, 3))
	for _, tt := range []struct {
		desc string
		b    []byte
		seed uint64
	}{
		{"another seed", b, Seed(1, 3, 2)},
		{"moved by a byte", b[1:], Seed(1, 2, 3)},
		{"moved by a word", b[8:], Seed(1, 2, 3)},
		{"never written", make([]byte, 64), Seed(1, 2, 3)},
	} {
		if Check(tt.b, tt.seed) == -1 {
			t.Errorf("%s passes", tt.desc)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	buf := make([]byte, 1<<16)
	Fill(buf, 9)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		Check(buf, 9)
	}
}
