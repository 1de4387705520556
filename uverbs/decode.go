//go:build linux

package uverbs

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
)

// Call is a request as the kernel sees it, for recorders and fake kernels in
// tests. Its byte slices are the command page's own.
type Call struct {
	Op       string // "create queue pair"
	Object   uint16
	Method   uint16
	Command  uint32 // of INVOKE_WRITE
	DriverID DriverID
	Attrs    []CallAttr
}

// CallAttr is one attribute of a [Call].
type CallAttr struct {
	ID    uint16
	Name  string
	Flags uint16
	Bytes []byte // to the kernel, or, with Out, room for the kernel's answer
	Out   bool
	Value []byte // the 8 data bytes: a handle or descriptor to read or write
}

// Attr finds an attribute of the call, nil if it is absent.
func (c *Call) Attr(name string) *CallAttr {
	for i := range c.Attrs {
		if c.Attrs[i].Name == name {
			return &c.Attrs[i]
		}
	}
	return nil
}

// Decode takes a command page apart as the kernel does and checks it against the
// table of methods: known method, each attribute known, present once, of its size,
// every address within the page, nothing mandatory missing.
func Decode(page []byte) (*Call, error) {
	if len(page) < hdrSize {
		return nil, fmt.Errorf("request of %d bytes", len(page))
	}
	n := int(hdrNumAttrs.Get(page))
	length := hdrSize + n*attrSize
	if int(hdrLength.Get(page)) != length || length > len(page) {
		return nil, fmt.Errorf("header length %d with %d attributes in %d bytes", hdrLength.Get(page), n, len(page))
	}
	c := &Call{Object: hdrObjectID.Get(page), Method: hdrMethodID.Get(page), DriverID: DriverID(hdrDriverID.Get(page))}
	if c.Object == objDevice && c.Method == methInvokeWrite {
		for i := range n {
			if a := page[hdrSize+i*attrSize:]; attrAttrID.Get(a) == attrWriteCmd {
				c.Command = uint32(attrData.Get(a))
			}
		}
	}
	m := lookup(c.Object, c.Method, c.Command)
	if m == nil {
		return nil, fmt.Errorf("no method %d of object %d with command %#x", c.Method, c.Object, c.Command)
	}
	c.Op = m.op
	for i := range n {
		a, err := m.decodeAttr(page, page[hdrSize+i*attrSize:][:attrSize])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.op, err)
		}
		if c.Attr(a.Name) != nil {
			return nil, fmt.Errorf("%s: %s twice", m.op, a.Name)
		}
		c.Attrs = append(c.Attrs, a)
	}
	for _, s := range m.attrs {
		if s.must && c.Attr(s.name) == nil {
			return nil, fmt.Errorf("%s: %s is missing", m.op, s.name)
		}
	}
	return c, nil
}

func lookup(object, id uint16, cmd uint32) *method {
	for _, m := range methods {
		if m.object == object && m.id == id && m.cmd == cmd {
			return m
		}
	}
	return nil
}

func (m *method) decodeAttr(page, a []byte) (CallAttr, error) {
	id, length := attrAttrID.Get(a), int(attrLen.Get(a))
	s := m.attr(id)
	if s == nil {
		return CallAttr{}, fmt.Errorf("attribute %#x is not known", id)
	}
	c := CallAttr{ID: id, Name: s.name, Flags: attrFlags.Get(a), Out: s.kind == kindOut, Value: a[attrData:][:8]}
	want := s.size
	switch s.kind {
	case kindConst:
		want = 8
	case kindFlags:
		want = 4
	case kindIn, kindOut:
		if want == 0 {
			want = length
		}
	default:
		want = 0
	}
	if length != want {
		return c, fmt.Errorf("%s has %d bytes, want %d", s.name, length, want)
	}
	if s.kind != kindOut && length <= 8 {
		c.Bytes = c.Value[:length]
		return c, nil
	}
	off := attrData.Get(a) - mr.Addr(page)
	if off < hdrSize || off > uint64(len(page)) || uint64(length) > uint64(len(page))-off {
		return c, fmt.Errorf("%s points out of the page", s.name)
	}
	c.Bytes = page[off:][:length]
	return c, nil
}
