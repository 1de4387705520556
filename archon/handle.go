package archon

// UnaryHandler answers a typed call: it reads req and writes resp, both of which must
// not be used after it has returned. They are zero, or Reset, to begin with.
type UnaryHandler[Req, Resp any] func(call *ServerCall, req *Req, resp *Resp) error

// Handle registers a typed handler that runs on a worker goroutine.
func Handle[Req, Resp any](s *Server, m *Unary[Req, Resp], h UnaryHandler[Req, Resp]) error {
	if h == nil {
		return s.Handle(m.Method, nil)
	}
	return s.Handle(m.Method, m.handler(h))
}

// HandleInline registers a typed handler that runs on the goroutine that moves the
// socket's bytes, as Server.HandleInline.
func HandleInline[Req, Resp any](s *Server, m *Unary[Req, Resp], h UnaryHandler[Req, Resp]) error {
	if h == nil {
		return s.HandleInline(m.Method, nil)
	}
	return s.HandleInline(m.Method, m.handler(h))
}

// handler decodes the request, runs h and encodes the response, unless h made it with
// call.Alloc or call.Gather itself.
func (m *Unary[Req, Resp]) handler(h UnaryHandler[Req, Resp]) Handler {
	return func(call *ServerCall) error {
		g := m.handlings.Get().(*handling[Req, Resp]) // a handler that panics keeps it
		err := g.run(call, h)
		g.reset()
		m.handlings.Put(g)
		return err
	}
}

// handling is the messages of a call while its handler runs.
type handling[Req, Resp any] struct {
	unary *Unary[Req, Resp]
	req   Req
	resp  Resp
}

func (g *handling[Req, Resp]) run(call *ServerCall, h UnaryHandler[Req, Resp]) error {
	if err := g.unary.req.Decode(call.Payload(), &g.req); err != nil {
		return &Error{Code: InvalidArgument, Message: "decode the request", Cause: err}
	}
	if err := h(call, &g.req, &g.resp); err != nil || call.answered() {
		return err
	}
	return call.encode(g)
}

func (g *handling[Req, Resp]) Size() int { return g.unary.resp.Size(&g.resp) }

func (g *handling[Req, Resp]) Append(dst []byte) ([]byte, error) {
	return g.unary.resp.Append(dst, &g.resp)
}

func (g *handling[Req, Resp]) reset() {
	reset(&g.req)
	reset(&g.resp)
}

// reset makes a message ready for its next use: by its own Reset, which may keep
// memory, or to zero.
func reset[T any](v *T) {
	if r, ok := any(v).(interface{ Reset() }); ok {
		r.Reset()
		return
	}
	var zero T
	*v = zero
}
