package scenario

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/des"
)

// Kinds of workloads.
const (
	incastKind      = "incast"
	trainingKind    = "training"
	inferenceKind   = "inference"
	connectionsKind = "connections"
)

const (
	maxHosts   = 20_000
	maxMessage = 64 << 20
	maxWindow  = 1 << 30
)

// fill takes the defaults.
func (s *Scenario) fill() {
	def := func(v *int, d int) { *v = cmp.Or(*v, d) }
	span := func(v *Span, d des.Time) { *v = cmp.Or(*v, Span(d)) }
	span(&s.Drain, 20*des.Millisecond)
	span(&s.Sample, 10*des.Microsecond)
	t := &s.Topology
	t.fill(s.needs())
	if t.Kind != pairOfHosts {
		def(&s.Switch.BufferBytes, 16<<20)
		span(&s.Switch.Latency, 500*des.Nanosecond)
	}
	def(&s.NIC.MTU, 4096)
	def(&s.NIC.Quantum, 1)
	s.NIC.DCQCN = cmp.Or(s.NIC.DCQCN, "paper15")
	s.NIC.Cache = cmp.Or(s.NIC.Cache, "none")
	s.NIC.fillCaches()
	if s.Switch.KmaxBytes != 0 {
		def(&s.Switch.ECNGbps, t.Gbps)
	}
	def(&s.TCP.MSS, 1460)
	def(&s.TCP.Cores, 16)
	def(&s.TCP.FirstWindow, 10)
	def(&s.TCP.AckEvery, 2)
	e := &s.Engine
	def(&e.FragmentBytes, 8<<10)
	def(&e.EagerBytes, 512)
	def(&e.SendDepth, 16)
	def(&e.Threads, 4)
	if e.FreeCPU {
		span(&e.StepDelay, 500*des.Nanosecond)
	} else {
		def(&e.CPUPercent, 100)
	}
	def(&e.RecvDepth, 8)
	def(&e.WindowBytes, e.FragmentBytes)
	def(&e.MaxWindowBytes, max(1<<20, e.FragmentBytes))
	def(&e.InboundBytes, core.InboundOf(float64(t.Gbps), e.FragmentBytes))
	span(&e.WindowTarget, 5*des.Microsecond)
	def(&e.AckTimeout, 14)
	def(&e.RetryCount, 7)
	w := &s.Workload
	switch w.Kind {
	case incastKind, connectionsKind, flowsKind:
		def(&w.Outstanding, 2)
	case inferenceKind:
		def(&w.Outstanding, 1)
		def(&w.Replicas, 1)
		def(&w.Fanout, w.Servers/max(w.Replicas, 1))
		if w.Replicas > 1 {
			span(&w.AttemptTimeout, 2*des.Millisecond)
			span(&w.Deadline, 50*des.Millisecond)
		}
		def(&w.RequestBytes, 256)
	case trainingKind:
		def(&w.LoadPercent, 40)
		def(&w.ReplyBytes, 64)
		def(&w.VictimBytes, 4000)
		span(&w.VictimPeriod, 20*des.Microsecond)
	}
	for i := range s.Variants {
		v := &s.Variants[i]
		if v.byName {
			if std, err := s.standard(v.Name); err == nil {
				*v = std
			}
		}
		v.Transport = cmp.Or(v.Transport, rdmaTransport)
	}
}

// needs is how many hosts the workload has.
func (s *Scenario) needs() int {
	w := &s.Workload
	switch w.Kind {
	case incastKind:
		return w.Senders + 1
	case trainingKind:
		return w.Trainers + w.Servers
	case inferenceKind:
		return w.Rankers + w.Servers
	case connectionsKind:
		return w.Clients + 1
	case flowsKind:
		return w.flowHosts()
	}
	return 0
}

// limit is a field with its bounds, and what to do about a value outside.
type limit struct {
	name      string
	v         int
	low, high int
	remedy    string
}

func checkLimits(limits []limit) error {
	for _, l := range limits {
		if l.v < l.low || l.v > l.high {
			return errors.Errorf("%s is %d, want %d to %d: %s", l.name, l.v, l.low, l.high, l.remedy)
		}
	}
	return nil
}

// check refuses what cannot be.
func (s *Scenario) check() error {
	if s.Version != Version {
		return errors.Errorf("version is %d, want %d: this is the format that is read here", s.Version, Version)
	}
	if len(s.Variants) == 0 {
		return errors.Errorf("variants is empty, want at least one: a name of %s, or an object", strings.Join(Standard(), ", "))
	}
	for _, err := range []error{checkText("name", s.Name, 1), checkText("about", s.About, 0)} {
		if err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name      string
		v         Span
		low, high des.Time
		remedy    string
	}{
		{"duration", s.Duration, des.Microsecond, 1000 * des.Second, "it is the virtual time of the load"},
		{"warmup", s.Warmup, 0, s.Duration.time() - 1, "it is a part of duration"},
		{"drain", s.Drain, 0, 100 * des.Second, "it is how long messages under way may take at the end"},
		{"sample", s.Sample, 100 * des.Nanosecond, des.Second, "it is the period of time series"},
		{"topology.delay", s.Topology.Delay, 0, des.Second, "a meter of cable is 5ns"},
		{"topology.up_delay", s.Topology.UpDelay, 0, des.Second, "a meter of cable is 5ns"},
		{"switch.latency", s.Switch.Latency, 0, des.Second, "a switch chip has 300ns to 500ns"},
		{"engine.step_delay", s.Engine.StepDelay, 0, des.Second, "it is the processor's time"},
		{"engine.window_target", s.Engine.WindowTarget, des.Nanosecond, des.Second, "it is the queueing that the adaptive window aims at"},
	} {
		if f.v.time() < f.low || f.v.time() > f.high {
			return errors.Errorf("%s is %v, want %v to %v: %s", f.name, f.v, Span(f.low), Span(f.high), f.remedy)
		}
	}
	if n := s.Duration.time() / s.Sample.time(); n > maxSamples {
		return errors.Errorf("sample is %v, want at least %v for that duration: a series has %d points at most", s.Sample, Span(s.Duration.time()/maxSamples), maxSamples)
	}
	w, t, e, sw := &s.Workload, &s.Topology, &s.Engine, &s.Switch
	if err := oneOf("topology.kind", t.Kind, topologies...); err != nil {
		return err
	}
	for _, err := range []error{w.check(), s.checkUnused()} {
		if err != nil {
			return err
		}
	}
	least := func(used bool) int { // of what is 0 where it is not used
		if used {
			return 1
		}
		return 0
	}
	frame := 0
	if sw.EgressBytes != 0 {
		frame = s.NIC.MTU + 100
		for i := range s.Variants {
			frame = max(frame, s.Variants[i].mtu(s)+100)
		}
	}
	if err := checkLimits([]limit{
		{"topology.gbps", t.Gbps, 1, 800, "it is the rate of a host's link"}, // before what it is the default of
		{"switch.pause_bytes", sw.PauseBytes, 0, 1 << 40, "0 is a share of the free buffer"},
		{"switch.tcp_ecn_bytes", sw.TCPECNBytes, 0, 1 << 30, "it is K of DCTCP for each 10 Gb/s, 0 is 30000"},
		{"tcp.initial_window", s.TCP.FirstWindow, 1, 1000, "it is a number of segments"},
		{"tcp.ack_segments", s.TCP.AckEvery, 1, 1000, "it is a number of segments"},
		{"switch.buffer_bytes", sw.BufferBytes, least(t.Kind != pairOfHosts), 1 << 40, "chips have 16 to 64 MiB"},
		{"switch.egress_bytes", sw.EgressBytes, frame, 1 << 40, "a queue has room for a frame, and 0 is no bound"},
		{"switch.ecn_kmin_bytes", sw.KminBytes, 0, sw.KmaxBytes, "give ecn_kmax_bytes too, and not less"},
		{"switch.ecn_gbps", sw.ECNGbps, least(sw.KmaxBytes != 0), 8000, "it is the rate that the thresholds are for"},
		{"tcp.mss_bytes", s.TCP.MSS, 100, 8942, "it is a segment's payload: 1460 fits a frame of 1500 bytes"},
		{"tcp.cores", s.TCP.Cores, 1, 1024, "it is a number of processor cores"},
		{"nic.dcqcn_params.increase_bytes", s.NIC.Params.IncreaseBytes, 0, math.MaxInt32, "0 is as nic.dcqcn has it"},
		{"nic.dcqcn_params.fast_steps", s.NIC.Params.FastSteps, 0, 1000, "0 is as nic.dcqcn has it"},
		{"nic.dcqcn_params.gain_1024", s.NIC.Params.Gain, 0, 1024, "it is in 1024ths, 0 is as nic.dcqcn has it"},
		{"nic.dcqcn_params.rai_mbps", s.NIC.Params.Rai, 0, 800_000, "0 is as nic.dcqcn has it"},
		{"nic.dcqcn_params.rhai_mbps", s.NIC.Params.Rhai, 0, 800_000, "0 is as nic.dcqcn has it"},
		{"nic.dcqcn_params.rmin_mbps", s.NIC.Params.Rmin, 0, 800_000, "0 is as nic.dcqcn has it"},
		{"nic.quantum", s.NIC.Quantum, 1, 1024, "it is a number of packets"},
		{"engine.fragment_bytes", e.FragmentBytes, 256, 16 << 20, "it is what one WRITE or READ carries"},
		{"engine.eager_bytes", e.EagerBytes, 256, 1 << 20, "messages up to here are one SEND"},
		{"engine.threads", e.Threads, 1, 256, "it is how many cores do the work of engines"},
		{"engine.cpu_percent", e.CPUPercent, least(!e.FreeCPU), 10_000, "it is of the assumed costs; free_cpu is without any"},
		{"engine.send_depth", e.SendDepth, 2, 1 << 15, "it is the length of an engine's chain"},
		{"engine.recv_depth", e.RecvDepth, 4, 1 << 15, "it is how many receives are posted"},
		{"engine.window_bytes", e.WindowBytes, e.FragmentBytes, maxWindow, "a window has room for a fragment"},
		{"engine.inbound_bytes", e.InboundBytes, 1024, maxWindow, "0 is the default"},
		{"engine.max_window_bytes", e.MaxWindowBytes, e.FragmentBytes, maxWindow, "a window has room for a fragment"},
		{"engine.ack_timeout", e.AckTimeout, 1, 31, "it is an exponent, of 4.096us"},
		{"engine.retry_count", e.RetryCount, 1, 7, "it has three bits on the wire"},
	}); err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		v, most float64
		remedy  string
	}{
		{"switch.ecn_pmax", sw.Pmax, 1, "it is a probability"},
		{"switch.pause_share", sw.PauseShare, 1000, "it is a share of the free buffer"},
		{"switch.lossy_share", sw.LossyShare, 1000, "it is a share of the free buffer"},
	} {
		if !(f.v >= 0 && f.v <= f.most) {
			return errors.Errorf("%s is %v, want 0 to %v: %s", f.name, f.v, f.most, f.remedy)
		}
	}
	if err := checkMTU("nic.mtu_bytes", s.NIC.MTU); err != nil {
		return err
	}
	if err := oneOf("nic.dcqcn", s.NIC.DCQCN, "paper15", "nic", "ns3", "off"); err != nil {
		return err
	}
	if err := oneOf("nic.cache", s.NIC.Cache, "none", "cx5", "cx6"); err != nil {
		return err
	}
	if err := t.checkShape(); err != nil {
		return err
	}
	if n := s.needs(); n > t.Hosts {
		switch t.Kind {
		case graph:
			return errors.Errorf("topology.places has %d hosts, and the workload %d: give the switch of each", t.Hosts, n)
		case fatTree:
			return errors.Errorf("topology.k of %d makes %d hosts, and the workload has %d: give switches more ports", t.K, t.Hosts, n)
		}
		return errors.Errorf("topology.hosts is %d, and the workload has %d: leave it out, or give it as many", t.Hosts, n)
	}
	for _, err := range []error{s.checkCaches(), s.checkFlows(), s.checkSteps(), s.checkVariants(), s.checkSweep(), s.checkFaults()} {
		if err != nil {
			return err
		}
	}
	return nil
}

// maxText bounds a name.
const maxText = 500

// checkText refuses what a table or a chart cannot show, and what is too short.
func checkText(name, v string, least int) error {
	if len(v) < least || len(v) > maxText || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.Errorf("%s is %.60q, want %d to %d bytes that can be printed: results are known by it", name, v, least, maxText)
	}
	return nil
}

func checkMTU(name string, v int) error {
	if !slices.Contains([]int{256, 512, 1024, 2048, 4096}, v) {
		return errors.Errorf("%s is %d, want 256, 512, 1024, 2048 or 4096: a path MTU is one of these", name, v)
	}
	return nil
}

// oneOf is an error unless the value is one of the choices.
func oneOf(name, got string, choices ...string) error {
	if slices.Contains(choices, got) {
		return nil
	}
	return errors.Errorf("%s is %q, want one of %s", name, got, strings.Join(choices, ", "))
}

func (w *Workload) check() error {
	var limits []limit
	add := func(name string, v, low, high int, remedy string) {
		limits = append(limits, limit{"workload." + name, v, low, high, remedy})
	}
	switch w.Kind {
	case incastKind:
		add("senders", w.Senders, 1, maxHosts-1, "it is how many hosts send to one")
		add("outstanding", w.Outstanding, 1, 128, "it is how many messages a sender has under way")
		add("rate_per_s", w.Rate, 0, 1_000_000_000, "it is of all senders together; 0 is as fast as answers come")
	case trainingKind:
		add("trainers", w.Trainers, 1, maxHosts, "they push to the servers")
		add("servers", w.Servers, 1, maxHosts, "trainers push to them")
		add("load_percent", w.LoadPercent, 1, 200, "it is the share of the servers' links that the pushes take")
		add("reply_bytes", w.ReplyBytes, 1, maxMessage, "it is a message's length")
		add("victim_bytes", w.VictimBytes, 1, maxMessage, "it is a message's length")
	case inferenceKind:
		add("rankers", w.Rankers, 1, maxHosts, "they fetch from the servers")
		add("servers", w.Servers, 1, maxHosts, "rankers fetch from them")
		add("replicas", w.Replicas, 1, min(w.Servers, 16), "it is how many servers have the same")
		add("fanout", w.Fanout, 1, w.Servers/max(w.Replicas, 1), "a fetch asks that many of the shards")
		add("outstanding", w.Outstanding, 1, 64, "it is how many fetches a ranker has under way")
		add("request_bytes", w.RequestBytes, 1, maxMessage, "it is a message's length")
	case connectionsKind:
		add("clients", w.Clients, 1, maxHosts-1, "it is how many hosts send to one")
		add("connections", w.Connections, 1, 100_000, "it is the number of sockets in all")
		add("outstanding", w.Outstanding, 1, 128, "it is how many messages a socket has under way")
		add("rate_per_s", w.Rate, 0, 1_000_000_000, "it is of all sockets together; 0 is as fast as answers come")
	case flowsKind:
		if len(w.Flows) == 0 {
			return errors.New("workload.flows is empty, want at least one, as {\"from\": 1, \"to\": 0}")
		}
		for i := range w.Flows {
			add("flows.from", w.Flows[i].From, 0, maxHosts-1, "it is a host's number")
			add("flows.to", w.Flows[i].To, 0, maxHosts-1, "it is a host's number")
		}
		for _, err := range []error{checkLimits(limits), w.checkUnused()} {
			if err != nil {
				return err
			}
		}
		return nil // the rest of a flow depends on the network
	default:
		return oneOf("workload.kind", w.Kind, incastKind, trainingKind, inferenceKind, connectionsKind, flowsKind)
	}
	for _, err := range []error{checkLimits(limits), w.checkUnused()} {
		if err != nil {
			return err
		}
	}
	return w.Size.check("workload.size")
}

func (z *Sizes) check(name string) error {
	switch {
	case z.Fixed != 0 && (z.Mean != 0 || z.P99 != 0):
		return errors.Errorf("%s has fixed and mean or p99: leave one of them out", name)
	case z.Fixed != 0:
		return checkLimits([]limit{{name + ".fixed", z.Fixed, 1, maxMessage, "it is a message's length"}})
	}
	if err := checkLimits([]limit{{name + ".mean", z.Mean, 1, maxMessage, "give mean and p99, or fixed"}}); err != nil {
		return err
	}
	// Above 14.9 times the mean no lognormal distribution has its 99th percentile.
	return checkLimits([]limit{{name + ".p99", z.P99, z.Mean, min(14*z.Mean, math.MaxInt32), "it is the 99th percentile: from the mean to 14 times that"}})
}

// maxSteps bounds the steps of a training.
const maxSteps = 10_000

func (s *Scenario) checkSteps() error {
	w := &s.Workload
	if w.Kind != trainingKind {
		return nil
	}
	if step := w.period(s.Topology.Gbps); step < s.Duration.time()/maxSteps {
		return errors.Errorf("workload.load_percent is %d, which makes a step of %d ps, want at least %v for that duration: lower it, or give more trainers or longer messages", w.LoadPercent, step, s.Duration/maxSteps)
	}
	return nil
}

func (s *Scenario) checkVariants() error {
	seen := map[string]bool{}
	for i := range s.Variants {
		v := &s.Variants[i]
		if err := checkText("variants.name", v.Name, 1); err != nil {
			return err
		}
		if v.byName {
			_, err := s.standard(v.Name)
			return err
		}
		if seen[v.Name] {
			return errors.Errorf("variants has %q twice: leave one of them out", v.Name)
		}
		seen[v.Name] = true
		if err := oneOf("variants.transport", v.Transport, transports...); err != nil {
			return err
		}
		if err := v.checkTCP(); err != nil {
			return err
		}
		if err := v.checkUnused(&s.NIC); err != nil {
			return err
		}
		if v.WindowTarget.time() > des.Second {
			return errors.Errorf("variants.window_target of %q is %v, want at most 1s: it is the queueing that the window aims at", v.Name, v.WindowTarget)
		}
		if v.Gbps != 0 {
			if err := checkLimits([]limit{{"variants.gbps", v.Gbps, 1, 800, "it is the rate of a host's link"}}); err != nil {
				return err
			}
		}
		if v.MTU != 0 {
			if err := checkMTU("variants.mtu_bytes", v.MTU); err != nil {
				return err
			}
		}
		if v.Transport == rcTransport {
			if err := s.Workload.checkRaw(); err != nil {
				return err
			}
		}
		if v.WindowBytes != 0 && v.WindowBytes < s.Engine.FragmentBytes || v.WindowBytes > maxWindow {
			return errors.Errorf("variants.window_bytes of %q is %d, want %d, a fragment, to %d, or 0 for none", v.Name, v.WindowBytes, s.Engine.FragmentBytes, maxWindow)
		}
		if v.NodeWindowBytes != 0 && v.NodeWindowBytes < s.Engine.FragmentBytes || v.NodeWindowBytes > maxWindow {
			return errors.Errorf("variants.node_window_bytes of %q is %d, want %d, a fragment, to %d, or 0 for none", v.Name, v.NodeWindowBytes, s.Engine.FragmentBytes, maxWindow)
		}
	}
	return nil
}
