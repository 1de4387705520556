//go:build linux

package uverbs

import "testing"

// The table must be sound: the encoder, Decode and the fake kernel rest on it.
func TestMethodTable(t *testing.T) {
	type key struct {
		object, id uint16
		cmd        uint32
	}
	seen := map[key]string{}
	for _, m := range methods {
		k := key{m.object, m.id, m.cmd}
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s are the same request", m.op, other)
		}
		seen[k] = m.op
		if m.op == "" || m.since == "" || lookup(m.object, m.id, m.cmd) != m {
			t.Errorf("%+v: name or release missing, or not found", m)
		}
		if len(m.attrs) > maxAttrs {
			t.Errorf("%s: %d attributes, room for %d", m.op, len(m.attrs), maxAttrs)
		}
		ids, names := map[uint16]bool{}, map[string]bool{}
		for _, a := range m.attrs {
			if ids[a.id] || names[a.name] {
				t.Errorf("%s: %s (%d) twice", m.op, a.name, a.id)
			}
			ids[a.id], names[a.name] = true, true
			if a.size != 0 && a.kind != kindIn && a.kind != kindOut || a.must && a.soft {
				t.Errorf("%s: %s: size or flags make no sense", m.op, a.name)
			}
		}
		if isWrite := m.object == objDevice && m.id == methInvokeWrite; isWrite != names["WRITE_CMD"] {
			t.Errorf("%s: WRITE_CMD belongs to INVOKE_WRITE only", m.op)
		}
		payload := 0
		for _, a := range m.attrs {
			payload += (a.size + 7) &^ 7
		}
		if payloadBase+payload > pageSize {
			t.Errorf("%s: %d bytes of payload do not fit a command page", m.op, payload)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	k := newFake(t)
	c := k.open()
	r, err := c.begin(mRegMR, 128)
	if err != nil {
		t.Fatal(err)
	}
	defer r.release()
	r.in(attrCoreIn, regMRSize)
	r.out(attrCoreOut, regMRRespSize)
	if errno := r.do(); errno != 0 {
		t.Fatal(errno)
	}
	good := append([]byte(nil), r.b...)
	attr := func(i int) []byte { return r.b[hdrSize+i*attrSize:] }
	for name, change := range map[string]func(){
		"object":            func() { hdrObjectID.Put(r.b, 99) },
		"length":            func() { hdrLength.Put(r.b, 25) },
		"count":             func() { hdrNumAttrs.Put(r.b, 4000) },
		"command":           func() { attrData.Put(attr(0), 77) },
		"attribute":         func() { attrAttrID.Put(attr(1), 0x55) },
		"twice":             func() { attrAttrID.Put(attr(2), attrCoreIn); attrLen.Put(attr(2), regMRSize) },
		"size":              func() { attrLen.Put(attr(1), 39) },
		"null pointer":      func() { attrData.Put(attr(1), 0) },
		"far pointer":       func() { attrData.Put(attr(1), attrData.Get(attr(1))+4096) },
		"missing":           func() { hdrNumAttrs.Put(r.b, 2); hdrLength.Put(r.b, hdrSize+2*attrSize) },
		"pointer to header": func() { attrData.Put(attr(1), attrData.Get(attr(1))-payloadBase) },
	} {
		change()
		if _, err := Decode(r.b); err == nil {
			t.Errorf("%s: not refused", name)
		}
		copy(r.b, good)
	}
	if _, err := Decode(r.b); err != nil {
		t.Errorf("the unchanged request: %v", err)
	}
	for n := range hdrSize + 3*attrSize {
		if _, err := Decode(r.b[:n]); err == nil {
			t.Errorf("the first %d bytes: not refused", n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	page := make([]byte, 256)
	hdrLength.Put(page, hdrSize+attrSize)
	hdrNumAttrs.Put(page, 1)
	hdrObjectID.Put(page, objPD)
	attrAttrID.Put(page[hdrSize:], attrPDHandle)
	f.Add(page)
	f.Fuzz(func(t *testing.T, page []byte) {
		c, err := Decode(page)
		if err != nil {
			return
		}
		if c.Op == "" || len(c.Attrs) > len(page)/attrSize {
			t.Errorf("decoded %+v", c)
		}
	})
}
