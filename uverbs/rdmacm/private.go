package rdmacm

import "fmt"

// How much private data each message has room for, in bytes (rdma/ib_cm.h; the
// connection manager takes 36 of a request's 92 for itself). One more each is needed
// by Frame.
const (
	MaxRequestPrivate = 56
	MaxAcceptPrivate  = 196
	MaxRejectPrivate  = 148
)

// Frame puts the length of private data in front of it, in one byte, so that the
// peer can take the room that it gets apart with [Unframe]. data may have up to 255
// bytes; what a message has room for is less.
func Frame(data []byte) ([]byte, error) {
	if len(data) > 255 {
		return nil, fmt.Errorf("private data of %d bytes, at most 255", len(data))
	}
	return append([]byte{byte(len(data))}, data...), nil
}

// Unframe gives the data of which Frame made the start of b. A peer that sent none
// sent 0 bytes. The error tells that b is not of Frame: the length is beyond b, or what
// follows the data is not zero.
func Unframe(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	n := int(b[0])
	if n > len(b)-1 {
		return nil, fmt.Errorf("private data claims %d bytes, %d there: the peer does not put a length in front", n, len(b)-1)
	}
	for _, c := range b[1+n:] {
		if c != 0 {
			return nil, fmt.Errorf("private data goes on after its %d bytes: the peer does not put a length in front", n)
		}
	}
	return b[1 : 1+n : 1+n], nil
}
