package archon

import (
	"encoding"
	"sync/atomic"
)

// Codec turns messages of type T into bytes and back. Any goroutine may call it.
// Protobuf and the like are Codecs of a few lines in modules of their own: Size,
// MarshalAppend and Unmarshal of their package.
type Codec[T any] interface {
	// Size is how many bytes Append adds, or a guess: a low one costs a copy.
	Size(v *T) int
	// Append appends v to dst, which is the transport's buffer.
	Append(dst []byte, v *T) ([]byte, error)
	// Decode makes v what src says. It must not keep src.
	Decode(src []byte, v *T) error
}

// Binary is the codec of types that implement encoding.BinaryMarshaler and
// BinaryUnmarshaler. Those with AppendBinary too (encoding.BinaryAppender) are written
// straight into the transport's buffer; Size() int, if they have it, says how much room
// that takes, else the sizes of earlier messages do.
func Binary[T any, P interface {
	*T
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}]() Codec[T] {
	if _, ok := any(P(nil)).(encoding.BinaryAppender); ok {
		_, sized := any(P(nil)).(sizer)
		return &appendCodec[T, P]{sized: sized}
	}
	return marshalCodec[T, P]{}
}

type sizer interface{ Size() int }

type marshalCodec[T any, P interface {
	*T
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}] struct{}

func (marshalCodec[T, P]) Size(*T) int { return 0 } // the bytes are copied anyway

func (marshalCodec[T, P]) Append(dst []byte, v *T) ([]byte, error) {
	b, err := P(v).MarshalBinary()
	if err != nil || len(dst) == 0 {
		return b, err
	}
	return append(dst, b...), nil
}

func (marshalCodec[T, P]) Decode(src []byte, v *T) error { return P(v).UnmarshalBinary(src) }

type appendCodec[T any, P interface {
	*T
	encoding.BinaryUnmarshaler
}] struct {
	sized bool
	guess sizeGuess
}

func (c *appendCodec[T, P]) Size(v *T) int {
	if c.sized {
		return any(P(v)).(sizer).Size()
	}
	return c.guess.size()
}

func (c *appendCodec[T, P]) Append(dst []byte, v *T) ([]byte, error) {
	b, err := any(P(v)).(encoding.BinaryAppender).AppendBinary(dst)
	if err == nil && !c.sized {
		c.guess.saw(len(b) - len(dst))
	}
	return b, err
}

func (c *appendCodec[T, P]) Decode(src []byte, v *T) error { return P(v).UnmarshalBinary(src) }

// sizeGuess guesses sizes from those before: the largest of late.
type sizeGuess struct{ n atomic.Int64 }

const (
	firstGuess = 512
	maxGuess   = 64 << 10 // beyond, a copy costs less than the memory of wrong guesses
)

func (g *sizeGuess) size() int { return int(g.n.Load()) + firstGuess }

// saw learns a size. Calls at once may undo each other, which costs a copy at most.
func (g *sizeGuess) saw(n int) {
	old := g.n.Load()
	next := max(min(int64(n), maxGuess), old-old/64)
	if next != old {
		g.n.Store(next)
	}
}

// Empty is the codec of messages that say nothing.
func Empty() Codec[struct{}] { return emptyCodec{} }

type emptyCodec struct{}

func (emptyCodec) Size(*struct{}) int                             { return 0 }
func (emptyCodec) Append(dst []byte, _ *struct{}) ([]byte, error) { return dst, nil }
func (emptyCodec) Decode(src []byte, _ *struct{}) error {
	if len(src) != 0 {
		return Errorf(InvalidArgument, "%d bytes where there is nothing to say", len(src))
	}
	return nil
}
