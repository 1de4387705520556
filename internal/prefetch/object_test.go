package prefetch

import "testing"

// TestObject: it changes nothing, allocates nothing, and takes nil.
func TestObject(t *testing.T) {
	v := new([1000]byte)
	for i := range v {
		v[i] = byte(i)
	}
	want, none := *v, (*[1000]byte)(nil)
	if n := testing.AllocsPerRun(100, func() { Object(v); Object(none); Part(v, 100, 100); Of(v, 100); Of(nil, 100) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if *v != want {
		t.Error("the object has changed")
	}
}
