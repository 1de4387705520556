package archon

import "testing"

func TestClasses(t *testing.T) {
	for class := range maxClasses - 1 {
		size := classSize(class)
		if classOf(size) != class || classOf(size+1) != class+1 {
			t.Fatalf("class %d of %d bytes: %d, and %d for a byte more", class, size, classOf(size), classOf(size+1))
		}
		if class > 0 && size > 256 && size*4 > classSize(class-1)*5 {
			t.Errorf("class %d: %d bytes, the one below has %d", class, size, classSize(class-1))
		}
	}
	if classOf(0) != 0 || classOf(1) != 0 || classOf(1<<31) >= maxClasses {
		t.Error("the ends of the classes are off")
	}
	if classSize(firstLarge) != 32<<10 {
		t.Errorf("the first large class has %d bytes", classSize(firstLarge))
	}
	b := buffers.get(300)
	if len(b) != 300 || cap(b) != 320 {
		t.Errorf("300 bytes: length %d, capacity %d", len(b), cap(b))
	}
	buffers.put(b[:10])
	buffers.put(nil)
	buffers.put(make([]byte, 300, 301)) // not ours: left alone
	var p bufPool
	var all [][]byte
	for range 10 {
		all = append(all, p.get(maxIdle/4))
	}
	for _, b := range all {
		p.put(b)
	}
	if p.idle != maxIdle {
		t.Errorf("%d bytes idle, want %d", p.idle, maxIdle)
	}
	for range 4 {
		p.get(maxIdle / 4)
	}
	if p.idle != 0 {
		t.Errorf("%d bytes idle with none left", p.idle)
	}
}
