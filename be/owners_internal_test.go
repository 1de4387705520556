package be

import "testing"

// TestOwnersAfterTheWorkerEnded: what a worker that has ended does not take stays the
// caller's, who may free it.
func TestOwnersAfterTheWorkerEnded(t *testing.T) {
	t.Setenv("BEMALLOC_DEBUG", "check")
	d := newInstant(t, 1)
	n := d.sock.Node()
	d.w.ring.close()
	for name, post := range map[string]func(b []byte) error{
		"Post":       func(b []byte) error { return d.sock.Post(b, nil) },
		"PostGather": func(b []byte) error { return d.sock.PostGather(b[:8], [][]byte{b[8:]}, nil) },
	} {
		b, err := n.Alloc(64)
		if err != nil {
			t.Fatal(err)
		}
		if err := post(b); err != ErrClosed {
			t.Errorf("%s: %v", name, err)
		}
		n.Free(b)
	}
	if err := n.mem.owners.err(); err != nil {
		t.Error(err)
	}
}
