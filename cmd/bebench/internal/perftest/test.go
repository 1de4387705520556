package perftest

// Test says which of perftest's programs the peer is, as far as the exchange
// depends on it.
type Test struct {
	OneSided bool // WRITE, READ or atomic, else SEND
	Write    bool
	Latency  bool
}

// EachSize reports a barrier before each size.
func (t Test) EachSize() bool { return !t.OneSided }

// AfterEachSize reports a barrier after each of several sizes too.
func (t Test) AfterEachSize() bool { return !t.OneSided && !t.Latency }

// Reports reports that the initiator tells its result, after a barrier.
func (t Test) Reports() bool { return t.OneSided && !t.Latency }

// Closes reports whether the ends close the exchange in good order. ib_write_lat
// just ends.
func (t Test) Closes() bool { return !t.pingsMemory() }

// Alone reports whether one end moves all the data, and the other only lets it reach
// its memory.
func (t Test) Alone() bool { return t.OneSided && !t.pingsMemory() }

// pingsMemory reports WRITEs that are answered with WRITEs.
func (t Test) pingsMemory() bool { return t.Latency && t.Write }

// ServerFirst reports whether the server sends the first message of a ping-pong.
func (t Test) ServerFirst() bool { return t.pingsMemory() }
