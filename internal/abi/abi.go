// Package abi reads and writes C structs by byte offset, so that no Go struct
// layout has to agree with a C compiler. A constant of type [U32] is the offset of
// a 32-bit field; the byte order is the host's.
//
// Offsets are checked against tables made by a C compiler: see abicheck.
package abi

import "encoding/binary"

// U8 is the offset of an 8-bit field.
type U8 int

// Put stores v into the field of the struct at b.
func (o U8) Put(b []byte, v uint8) { b[o] = v }

// Get loads the field of the struct at b.
func (o U8) Get(b []byte) uint8 { return b[o] }

// U16 is the offset of a 16-bit field.
type U16 int

// Put stores v into the field of the struct at b.
func (o U16) Put(b []byte, v uint16) { binary.NativeEndian.PutUint16(b[o:], v) }

// Get loads the field of the struct at b.
func (o U16) Get(b []byte) uint16 { return binary.NativeEndian.Uint16(b[o:]) }

// U32 is the offset of a 32-bit field.
type U32 int

// Put stores v into the field of the struct at b.
func (o U32) Put(b []byte, v uint32) { binary.NativeEndian.PutUint32(b[o:], v) }

// Get loads the field of the struct at b.
func (o U32) Get(b []byte) uint32 { return binary.NativeEndian.Uint32(b[o:]) }

// U64 is the offset of a 64-bit field.
type U64 int

// Put stores v into the field of the struct at b.
func (o U64) Put(b []byte, v uint64) { binary.NativeEndian.PutUint64(b[o:], v) }

// Get loads the field of the struct at b.
func (o U64) Get(b []byte) uint64 { return binary.NativeEndian.Uint64(b[o:]) }

// BE16 is the offset of a 16-bit field that is big-endian on every host.
type BE16 int

// Put stores v into the field of the struct at b.
func (o BE16) Put(b []byte, v uint16) { binary.BigEndian.PutUint16(b[o:], v) }

// Get loads the field of the struct at b.
func (o BE16) Get(b []byte) uint16 { return binary.BigEndian.Uint16(b[o:]) }

// BE32 is the offset of a 32-bit field that is big-endian on every host.
type BE32 int

// Put stores v into the field of the struct at b.
func (o BE32) Put(b []byte, v uint32) { binary.BigEndian.PutUint32(b[o:], v) }

// Get loads the field of the struct at b.
func (o BE32) Get(b []byte) uint32 { return binary.BigEndian.Uint32(b[o:]) }

// BE64 is the offset of a 64-bit field that is big-endian on every host.
type BE64 int

// Put stores v into the field of the struct at b.
func (o BE64) Put(b []byte, v uint64) { binary.BigEndian.PutUint64(b[o:], v) }

// Get loads the field of the struct at b.
func (o BE64) Get(b []byte) uint64 { return binary.BigEndian.Uint64(b[o:]) }

// Struct is the offset of a struct or array inside another.
type Struct int

// In is the struct at the offset; it ends where b ends.
func (o Struct) In(b []byte) []byte { return b[o:] }
