package core

import (
	"fmt"
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

// onOpen takes the peer's wish for a socket.
func (e *Engine) onOpen(h *wire.Header, body []byte) error {
	listener, service, err := wire.ParseOpen(body)
	if err != nil {
		return err
	}
	if h.Socket == 0 || e.isOwn(h.Socket) || e.socket(h.Socket) != nil || uint64(h.Socket>>1) > uint64(e.cfg.MaxSockets) {
		return protocolError(h.Type, "socket", uint64(h.Socket), "a free number of the peer's, at most twice the socket limit")
	}
	if h.Flags&wire.FlagUnordered != 0 && !e.cfg.Unordered {
		return protocolError(h.Type, "flags", uint64(h.Flags), "no unordered sockets: they were not agreed on")
	}
	if e.leaving {
		e.control(control{typ: wire.Refuse, id: h.Socket, reason: wire.ReasonLeaving})
		return nil
	}
	s := e.addSocket(h.Socket)
	s.state, s.answered, s.unordered = sockOpen, true, h.Flags&wire.FlagUnordered != 0
	e.chain.scratch.Told = true
	if refusal, ok := e.h.Incoming(s, listener, service); !ok {
		s.told = true
		e.removeSocket(s, ErrClosed)
		e.control(control{typ: wire.Refuse, id: h.Socket, reason: refusal.Reason, text: refusal.Text})
		return nil
	}
	e.control(control{typ: wire.Accept, id: h.Socket})
	return nil
}

// onSocketState takes the messages that begin and end sockets.
func (e *Engine) onSocketState(now time.Duration, s *Socket, h *wire.Header, body []byte) error {
	switch h.Type {
	case wire.Accept, wire.Refuse:
		return e.onOpened(s, h, body)
	case wire.Close:
		if s.state == sockOpening {
			return protocolError(h.Type, "socket", uint64(h.Socket), "a socket that was accepted")
		}
		e.onClose(s)
		return nil
	case wire.Closed:
		if s.state != sockCloseSent {
			return protocolError(h.Type, "socket", uint64(h.Socket), "a socket that was closed")
		}
		e.removeSocket(s, ErrClosed)
		return nil
	}
	return protocolError(h.Type, "type", uint64(h.Type), "a message of a socket")
}

func (e *Engine) onOpened(s *Socket, h *wire.Header, body []byte) error {
	if !e.isOwn(h.Socket) || s.answered {
		return protocolError(h.Type, "socket", uint64(h.Socket), "a socket that we asked for")
	}
	s.answered = true
	e.chain.scratch.Told = true
	if h.Type == wire.Refuse {
		reason, text, err := wire.ParseRefuse(body)
		if err != nil {
			return err
		}
		if !s.told {
			s.told = true
			refused := reasonError(ErrRefused, reason, text)
			if reason == wire.ReasonBusy {
				refused = fmt.Errorf("%w: %s", ErrBusy, text)
			}
			e.h.Opened(s, refused)
		}
		e.removeSocket(s, ErrRefused)
		return nil
	}
	if s.told {
		e.sendClose(s) // given up while it was asked for
		return nil
	}
	s.state = sockOpen
	e.h.Opened(s, nil)
	return nil
}

// onClose takes the peer's end of a socket. It comes after the peer's last
// WRITE; our CLOSED comes after our last one.
func (e *Engine) onClose(s *Socket) {
	e.stopReads(s, wire.ReasonLeaving)
	if s.reading > 0 {
		s.closeOwed = true // the peer keeps what we read until CLOSED
		return
	}
	if s.packed > 0 {
		s.closeOwed = true // the peer was told that these arrived
		return
	}
	e.control(control{typ: wire.Closed, id: s.id})
	if s.state == sockCloseSent {
		e.failSends(s, ErrClosed)
		return // both closed at once: the peer's CLOSED is still to come
	}
	e.removeSocket(s, ErrPeerClosed)
}
