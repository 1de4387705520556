package bemalloc

import "testing"

// TestAllocReady: a long buffer that was freed is given again, whole and to one only, and
// nothing is registered for one that there is not.
func TestAllocReady(t *testing.T) {
	r := newRegistrar(t)
	p := newPool(t, Config{Registrar: r})
	b := must(t)(p.Alloc(2*BlockBytes + 1))
	for _, n := range []int{1, BlockBytes, BlockBytes + 1, 3 * BlockBytes, 1 << 40} {
		if _, ok := p.AllocReady(n); ok {
			t.Errorf("%d bytes are ready, and nothing is free", n)
		}
	}
	free(t, p, b)
	calls := r.calls
	got, ok := p.AllocReady(3 * BlockBytes)
	if !ok || len(got) != 3*BlockBytes || !p.Owns(got) {
		t.Fatalf("what was freed is not ready: %v, %d bytes", ok, len(got))
	}
	if _, ok := p.AllocReady(3 * BlockBytes); ok {
		t.Error("one buffer was given twice")
	}
	if r.calls != calls || p.Stats().InUseBytes != 3*BlockBytes {
		t.Errorf("%d registrations, %d bytes in use", r.calls-calls, p.Stats().InUseBytes)
	}
	free(t, p, got)

	checked := newPool(t, Config{Debug: Debug{Check: true}})
	free(t, checked, must(t)(checked.Alloc(3*BlockBytes)))
	if _, ok := checked.AllocReady(3 * BlockBytes); ok {
		t.Error("a buffer was given without its checks")
	}
}
