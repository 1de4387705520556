// Package wire is the encoding of ByteExpress control messages: what one engine
// SENDs into the posted receives of its peer.
//
// Each message is a 16-byte header and a body whose layout follows from the
// header's type. All integers are little-endian. Decoders take bytes of a peer:
// they never panic, and their errors name the field.
package wire
