package ps

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/pkg/errors"
)

// MethodMap answers with the text of the server's Map. Its request is empty.
var MethodMap = archon.NewMethod("ps.Map")

// versionKey is the metadata of a refusal: the version of the server's map, in decimal.
const versionKey = "ps-map-version"

// WrongMapError is a part of a request that a shard refused because its client has
// another map, though other shards may have applied their parts. If the shard's is the
// newer one, no replica of it applied the part or ever will; if it is the older one, a copy
// of the same request may be applied later. A client of NewMapClient goes on by itself,
// and gives such an error, as a cause, if the two did not get the same map in time; it
// repeats the rest with PushCall.Again. Its code is Aborted.
type WrongMapError struct {
	Version uint32 // of the shard's map
	Err     error
}

// Error says what the shard said.
func (e *WrongMapError) Error() string {
	return fmt.Sprintf("the shard has map version %d: %v", e.Version, e.Err)
}

// Unwrap gives the *archon.Error.
func (e *WrongMapError) Unwrap() error { return e.Err }

// asWrongMap gives a refusal its type.
func asWrongMap(err error) error {
	var e *archon.Error
	if !errors.As(err, &e) || e.Code != archon.Aborted {
		return err
	}
	value, _ := e.Metadata.Get(versionKey)
	version, bad := strconv.ParseUint(string(value), 10, 32)
	if bad != nil {
		return err
	}
	return &WrongMapError{Version: uint32(version), Err: err}
}

// withVersion has a handler's refusals of other maps say which map is here.
func (s *Shard) withVersion(h archon.Handler) archon.Handler {
	if s.cfg.Map == nil {
		return h
	}
	return func(call *archon.ServerCall) error {
		err := h(call)
		if e, ok := err.(*archon.Error); ok && e.Code == archon.Aborted { //nolint:errorlint // ownership does not wrap it
			version := s.Map().Version
			if e == errCrowded {
				version = crowdedVersion(call.Payload(), version)
			}
			if err := call.AddReplyMetadata(versionKey, strconv.FormatUint(uint64(version), 10)); err != nil {
				return err
			}
		}
		return err
	}
}

// registerMap makes the shard answer MethodMap.
func (s *Shard) registerMap(srv *archon.Server) error {
	if s.cfg.Map == nil {
		return nil
	}
	if _, err := s.cfg.Map.MarshalText(); err != nil {
		return err
	}
	type textOf struct {
		m    *Map
		text []byte
	}
	var made atomic.Pointer[textOf] // every client asks when the map has changed
	return srv.HandleInline(MethodMap, func(call *archon.ServerCall) error {
		m := s.Map()
		t := made.Load()
		if t == nil || t.m != m {
			text, err := m.MarshalText()
			if err != nil {
				return err
			}
			t = &textOf{m, text}
			made.Store(t)
		}
		return encodeTo(call, t.text)
	})
}

// FetchMap asks a server for its map: any shard's, at an *archon.Client or a
// *channel.Channel.
func FetchMap(ctx context.Context, from archon.Invoker) (*Map, error) {
	r, err := from.Do(ctx, &archon.Invocation{Method: MethodMap})
	if err != nil {
		return nil, errors.WithMessage(err, "ps: fetch the map")
	}
	defer r.Release()
	m := new(Map)
	if err := m.UnmarshalText(r.Payload()); err != nil {
		return nil, err
	}
	return m, nil
}
