package grpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Raw is a codec whose messages are *[]byte, sent as they are, so that no encoding
// is measured. What it reads into a slice that is long enough goes there.
type Raw struct{}

// Name is the codec's.
func (Raw) Name() string { return "raw" }

// Marshal gives the bytes, which nobody changes until they are sent.
func (Raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal copies what came.
func (Raw) Unmarshal(data mem.BufferSlice, v any) error {
	b := v.(*[]byte)
	if n := data.Len(); cap(*b) >= n {
		*b = (*b)[:n]
		data.CopyTo(*b)
		return nil
	}
	*b = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = Raw{}
