package be

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/bemalloc"
)

// TestReadyGoesFirst: what was freed meanwhile, and is warm, serves before what is
// prepared, so that no more memory comes into use than is under way at a time.
func TestReadyGoesFirst(t *testing.T) {
	t.Setenv("BEMALLOC_DEBUG", "") // with which no buffer is ready
	poked := make(chan struct{}, 1)
	m, err := newMemory(nil, &Config{}, 0, func() { poked <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	const n = 2 * bemalloc.BlockBytes
	warm, err := m.alloc(localDomain, n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.allocLong(localDomain, n); !errors.Is(err, core.ErrComing) {
		t.Fatalf("with nothing ready: %v", err)
	}
	<-poked
	m.local.Free(warm)
	first, err := m.allocLong(localDomain, n)
	if err != nil || &first[0] != &warm[0] {
		t.Errorf("it was not what was freed, %v", err)
	}
	second, err := m.allocLong(localDomain, n)
	if err != nil || &second[0] == &warm[0] {
		t.Fatalf("then it was not what is prepared, %v", err)
	}
	m.local.Free(first)
	m.local.Free(second)
	if err := m.close(); err != nil {
		t.Error(err)
	}
}
