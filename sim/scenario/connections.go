package scenario

// connections has clients send messages to one server over many sockets, each with so
// many under way as the scenario says. A message takes from the client's call until
// the server has it.
type connections struct {
	lines []*line
	took  *tally
}

func (w *connections) setup(b *bench) error {
	w.took = b.class("message")
	for i := range b.s.Workload.Connections {
		l, err := b.n.dial(i%b.s.Workload.Clients+1, 0)
		if err != nil {
			return err
		}
		w.lines = append(w.lines, l)
	}
	return nil
}

func (w *connections) start(b *bench) error {
	b.loop(w.lines, w.took)
	return nil
}

func (w *connections) finish(*bench, *Run) {}
