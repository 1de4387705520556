package mmio

import (
	"errors"
	"syscall"
	"testing"
)

// Queue memory is zeroed and writable; of huge pages where the system has them.
func TestQueue(t *testing.T) {
	before := Live()
	for _, huge := range []bool{false, true} {
		m, err := Queue(5000, huge)
		if err != nil {
			if !huge || !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EINVAL) {
				t.Errorf("huge %v: %v", huge, err)
			}
			continue
		}
		b := m.Bytes()
		if len(b) < 5000 || huge && len(b) != HugePage || b[0] != 0 || b[4999] != 0 {
			t.Errorf("huge %v: %d bytes", huge, len(b))
		}
		b[len(b)-1] = 1
		if err := m.Close(); err != nil {
			t.Errorf("huge %v: %v", huge, err)
		}
	}
	if Live() != before {
		t.Errorf("%d mappings live, want %d", Live(), before)
	}
}
