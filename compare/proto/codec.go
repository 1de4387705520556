// Package proto is archon's codec of protobuf messages: a few lines, in a module that
// depends on protobuf, so that archon does not.
package proto

import (
	"google.golang.org/protobuf/proto"

	"github.com/byteexpress/byteexpress/archon"
)

// Codec gives the codec of the message type M, of which *M is a proto.Message:
//
//	var echo = archon.NewUnary("Echo.Echo", proto.Codec[pb.Request](), proto.Codec[pb.Response]())
func Codec[M any, P interface {
	*M
	proto.Message
}]() archon.Codec[M] {
	return codec[M, P]{}
}

type codec[M any, P interface {
	*M
	proto.Message
}] struct{}

func (codec[M, P]) Size(m *M) int { return proto.Size(P(m)) }

func (codec[M, P]) Append(dst []byte, m *M) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(dst, P(m))
}

func (codec[M, P]) Decode(src []byte, m *M) error { return proto.Unmarshal(src, P(m)) }
