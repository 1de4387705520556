package archon

import "github.com/pkg/errors"

// method is a registered method.
type method struct {
	Method
	handler Handler
	inline  bool
	streams bool
}

// methodTable finds methods by id: an open-addressing table, at most half full,
// that is only read once the server serves. Ids are hashes already.
type methodTable struct {
	slots       []*method // a power of two
	count       int
	needWorkers bool
}

func (t *methodTable) add(m *method) error {
	if old := t.find(m.id); old != nil {
		return errors.Errorf("method %s: %s is registered with the same id %#x", m.name, old.name, m.id)
	}
	if 2*(t.count+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]*method, max(8, 2*len(old)))
		for _, o := range old {
			if o != nil {
				t.place(o)
			}
		}
	}
	t.place(m)
	t.count++
	t.needWorkers = t.needWorkers || !m.inline && !m.streams
	return nil
}

func (t *methodTable) place(m *method) {
	mask := uint64(len(t.slots) - 1)
	i := m.id & mask
	for t.slots[i] != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = m
}

// find gives the method of that id, or nil.
func (t *methodTable) find(id uint64) *method {
	if len(t.slots) == 0 {
		return nil
	}
	mask := uint64(len(t.slots) - 1)
	for i := id & mask; ; i = (i + 1) & mask {
		if m := t.slots[i]; m == nil || m.id == id {
			return m
		}
	}
}
