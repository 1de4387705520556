package scenario

import (
	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
	"github.com/byteexpress/byteexpress/sim/tcp"
)

// tcpProfiles are the TCPs that a variant may name as its transport.
var tcpProfiles = map[string]func() tcp.Config{
	"tcp-cubic-200": tcp.Stock,
	"tcp-cubic-5":   tcp.Tuned,
	"tcp-dctcp-5":   tcp.TunedDCTCP,
}

// tcpTransport is a TCP whose variant says how it controls congestion.
const tcpTransport = "tcp"

// controls are the ways of congestion control by name.
var controls = map[string]tcp.Control{"": tcp.Cubic, "cubic": tcp.Cubic, "reno": tcp.Reno, "dctcp": tcp.DCTCP}

// checkTCP refuses what no TCP is like.
func (v *Variant) checkTCP() error {
	if _, ok := controls[v.Control]; !ok {
		return oneOf("variants.control", v.Control, "cubic", "reno", "dctcp")
	}
	if d := max(v.MinRTO, v.MinProbe); d.time() > des.Second {
		return errors.Errorf("variants.min_rto or min_probe of %q is %v, want 1s at most, or none for the default", v.Name, d)
	}
	return nil
}

// tcpConfig is the TCP of a variant, false if it has another transport.
func (s *Scenario) tcpConfig(v *Variant) (tcp.Config, bool) {
	cfg := tcp.Config{Control: controls[v.Control], MinRTO: v.MinRTO.time(), MinProbe: v.MinProbe.time()}
	if v.Transport != tcpTransport {
		profile := tcpProfiles[v.Transport]
		if profile == nil {
			return cfg, false
		}
		cfg = profile()
	}
	t := &s.TCP
	cfg.MSS, cfg.Cores, cfg.Lossless, cfg.InitialWindow, cfg.AckSegments = t.MSS, t.Cores, t.Lossless, t.FirstWindow, t.AckEvery
	if t.FreeCPU {
		cfg.Costs, cfg.TSOBytes, cfg.GROBytes = new(hostcpu.TCPCosts), 1, 1
	}
	return cfg, true
}

// kernelTCP is a network of TCP connections.
type kernelTCP struct {
	n *tcp.Net
	f *fabric.Fabric
}

func newTCP(s *Scenario, v *Variant) (*kernelTCP, error) {
	cfg, _ := s.tcpConfig(v)
	f, err := s.buildFabric(v)
	if err != nil {
		return nil, err
	}
	n, err := tcp.New(f, cfg)
	if err != nil {
		return nil, err
	}
	return &kernelTCP{n: n, f: f}, nil
}

func (t *kernelTCP) fabric() *fabric.Fabric { return t.f }

func (t *kernelTCP) settle() error { return nil } // connections are there from the start

// dial joins two hosts by one connection. Tags index what waits for an
// acknowledgement.
func (t *kernelTCP) dial(from, to int) (*line, error) {
	l := &line{hosts: [2]int{from, to}}
	a, b := t.n.Dial(from, to)
	var waits des.Table[func(error)]
	ends := [2]*tcp.Conn{a, b}
	for i, c := range ends {
		c.OnMessage = func(m tcp.Message) {
			if l.got[i] != nil {
				l.got[i](m.Size)
			}
		}
		c.OnAcked = func(m tcp.Message) {
			if m.Tag != 0 {
				waits.Take(int32(m.Tag - 1))(nil)
			}
		}
	}
	l.send = func(end, size int, done func(error)) error {
		tag := uint64(0)
		if done != nil {
			tag = uint64(waits.Put(done)) + 1
		}
		ends[end].Send(size, tag)
		return nil
	}
	return l, nil
}

// fault begins or ends a fault. A host that crashed is one whose link is cut: its
// peers see the same.
func (t *kernelTCP) fault(f *Fault, begins bool) {
	switch f.Kind {
	case crashFault:
		t.f.Host(*f.Host).SetDown(true)
	case slowFault:
		t.n.Host(*f.Host).CPU().SetSpeed(f.speed(begins))
	}
}

func (t *kernelTCP) counters(r *Run) {
	s := t.n.Stats()
	r.count("segments", s.Segments)
	r.count("tcp_retransmits", s.Retransmits)
	r.count("tcp_recoveries", s.Recoveries)
	r.count("tcp_timeouts", s.Timeouts)
	r.count("tcp_probes", s.Probes)
	r.count("tcp_acks", s.Acks)
	busy := des.Time(0)
	for i := range t.f.Hosts() {
		busy += t.n.Host(i).CPU().Busy(hostcpu.TCP)
	}
	r.count("cpu_ns", uint64(busy/des.Nanosecond))
}
