package bemalloc

import "testing"

func TestClasses(t *testing.T) {
	last := uint32(0)
	for c := range classes {
		ci := classes[c]
		if c < plainClasses && (ci.size <= last || ci.size%objAlign != 0) {
			t.Errorf("class %d: size %d after %d", c, ci.size, last)
		}
		if c >= linearClasses && c < plainClasses && (float64(ci.size) > 1.27*float64(last+1) || ci.size/objAlign%2 == 0 && ci.size != maxSmall) {
			t.Errorf("class %d: size %d after %d", c, ci.size, last)
		}
		if c < plainClasses && last >= 1<<10 && float64(ci.size) > 1.18*float64(last+1) {
			t.Errorf("class %d: size %d after %d, more than 18 %%", c, ci.size, last)
		}
		if c >= plainClasses && ci.size != 1<<10<<(c-plainClasses) {
			t.Errorf("class %d: size %d", c, ci.size)
		}
		if ci.nobj == 0 || ci.nobj > spanObjects || ci.nobj*ci.size != ci.limit || ci.limit > ci.units*unitSize {
			t.Errorf("class %d: %d objects, %d bytes of them", c, ci.nobj, ci.limit)
		}
		if waste := ci.units*unitSize - ci.limit; waste*16 > ci.units*unitSize {
			t.Errorf("class %d of %d bytes wastes %d of %d units", c, ci.size, waste, ci.units)
		}
		if ci.cap < magazineMin || ci.cap > magazineSlots || 1+ci.cap/2 > batchMax {
			t.Errorf("class %d: magazine of %d", c, ci.cap)
		}
		last = ci.size
	}
	if last := classes[plainClasses-1].size; last != maxSmall {
		t.Errorf("largest class is %d, want %d", last, maxSmall)
	}
}

func TestClassFor(t *testing.T) {
	for n := range maxSmall + 1 {
		c := classFor(uint(n))
		if int(classes[c].size) < n || c > 0 && int(classes[c-1].size) >= max(n, 1) {
			t.Fatalf("classFor(%d) = %d of %d bytes", n, c, classes[c].size)
		}
	}
	for align := uint(1); align <= maxSmall; align *= 2 {
		for n := uint(0); n <= maxSmall; n += 61 {
			size := uint(classes[classAligned(n, align)].size)
			if size < n || align > objAlign && (size%align != 0 || size > 1024 && size > 2*max(n, align)) {
				t.Fatalf("classAligned(%d, %d) has objects of %d", n, align, size)
			}
		}
	}
}

// TestLocate holds the reciprocals to plain division, for every offset.
func TestLocate(t *testing.T) {
	for c := range classes {
		ci := &classes[c]
		for d := range ci.units * unitSize {
			idx, rem := ci.locate(d)
			if idx != d/ci.size || rem != d%ci.size {
				t.Fatalf("class %d: locate(%d) = %d, %d", c, d, idx, rem)
			}
			if got, want := ci.startsObject(d), d%ci.size == 0 && d/ci.size < ci.nobj; got != want {
				t.Fatalf("class %d: startsObject(%d) = %v", c, d, got)
			}
		}
	}
}
