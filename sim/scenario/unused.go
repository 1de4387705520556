package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/tcp"
)

// unused is a setting that would change nothing, because of another or for want of one.
// Who wrote it expects something of it, so it is an error. Only what depends on nothing
// but the file's other settings is looked for: engine and tcp may wait for the variants
// that use them.
type unused struct {
	name string
	set  bool // to something that is not the default
	idle bool // and nothing comes of it
	why  string
}

func refuseUnused(list []unused) error {
	for _, u := range list {
		if u.set && u.idle {
			return errors.Errorf("%s has no effect, as %s: leave it out, or change that", u.name, u.why)
		}
	}
	return nil
}

// checkUnused refuses settings of the network, the NIC and the engines that would change
// nothing.
func (s *Scenario) checkUnused() error {
	t, sw, e := &s.Topology, &s.Switch, &s.Engine
	flat, alike, pair, unmarked := t.Kind != leafSpine, !t.trunked(), t.Kind == pairOfHosts, sw.KmaxBytes == 0
	dctcp := false
	of := "topology.kind is " + t.Kind
	only := "topology.kind is " + t.Kind + ", which has no leaves and spines"
	none := "topology.kind is pair, which has no switch"
	marks := "without switch.ecn_kmax_bytes nothing is marked"
	lossless, spread, rates, rate := false, false, false, t.Gbps
	for i := range s.Variants {
		v := &s.Variants[i]
		c, isTCP := s.tcpConfig(v)
		dctcp = dctcp || isTCP && c.Control == tcp.DCTCP
		lossless = lossless || !sw.Lossy && (!isTCP || s.TCP.Lossless)
		spread = spread || v.Transport == rcTransport || v.Transport == rdmaTransport && !s.eager()
		rate, rates = max(rate, v.Gbps), rates || v.Gbps != 0 && v.Gbps != t.Gbps
	}
	for i := range t.Links {
		rate = max(rate, t.Links[i].Gbps)
	}
	list := []unused{
		{"topology.per_leaf", t.PerLeaf != 0, flat, only},
		{"topology.spines", t.Spines != 0, flat, only},
		{"topology.up_gbps", t.UpGbps != 0, alike, of},
		{"topology.up_delay", t.UpDelay != 0, alike, of},
		{"topology.left", t.Left != 0, t.Kind != dumbbell, of},
		{"topology.k", t.K != 0, t.Kind != fatTree, of},
		{"topology.trunks", len(t.Trunks) > 0, t.Kind != graph, of},
		{"topology.places", len(t.Places) > 0, t.Kind != graph, of},
		{"topology.links", len(t.Links) > 0, t.Kind != single && t.Kind != dumbbell && t.Kind != graph, of},
		{"switch.buffer_bytes", sw.BufferBytes != 0, pair, none},
		{"switch.egress_bytes", sw.EgressBytes != 0, pair, none},
		{"switch.latency", sw.Latency != 0, pair, none},
		{"switch.ecn_kmax_bytes", sw.KmaxBytes != 0, pair, none},
		{"switch.egress_bytes", true, sw.EgressBytes > sw.BufferBytes, "switch.buffer_bytes is less"},
		{"switch.egress_bytes", sw.EgressBytes != 0, lossless, "without switch.lossy frames are not dropped but paused, but for those of TCP"},
		{"switch.pause_quanta", sw.PauseQuanta, sw.Lossy, "switch.lossy drops frames and pauses nobody"},
		{"switch.pause_share", sw.PauseShare != 0, sw.Lossy, "switch.lossy drops frames and pauses nobody"},
		{"switch.pause_bytes", sw.PauseBytes != 0, sw.Lossy, "switch.lossy drops frames and pauses nobody"},
		{"switch.pause_share", sw.PauseShare != 0, sw.PauseBytes != 0, "switch.pause_bytes is there"},
		{"switch.pause_bytes", sw.PauseBytes != 0, pair, none},
		{"switch.pause_share", sw.PauseShare != 0, pair, none},
		{"switch.tcp_ecn_bytes", sw.TCPECNBytes != 0, !dctcp, "no variant is of DCTCP"},
		{"switch.ecn_pmax", sw.Pmax != 0, unmarked, marks},
		{"switch.ecn_gbps", sw.ECNGbps != 0, unmarked, marks},
		{"nic.dcqcn_params", s.NIC.Params != DCQCN{}, s.NIC.DCQCN == "off", `nic.dcqcn is "off"`},
		{"nic.dcqcn_params.rmin_mbps", true, s.NIC.Params.Rmin > 1000*rate, "no link is as fast"},
		{"workload.memory_bytes", s.Workload.MemoryBytes != 0, !spread, "no variant has messages that are spread, longer than engine.eager_bytes or of transport rc"},
		{"tcp.lossless", s.TCP.Lossless, sw.Lossy, "switch.lossy leaves no class without losses"},
		{"engine.cpu_percent", e.CPUPercent != 0, e.FreeCPU, "engine.free_cpu takes no processor time"},
		{"engine.step_delay", e.StepDelay != 0, !e.FreeCPU, "without engine.free_cpu the processor's time decides"},
		{"engine.keepalive", e.Keepalive != 0, e.PeerTimeout != 0 && e.PeerTimeout <= e.Keepalive, "engine.peer_timeout ends a silent peer before it is asked"},
	}
	for _, l := range t.Links {
		list = append(list, unused{fmt.Sprintf("topology.links of host %d", l.Host), true, l.Gbps == t.Gbps && l.Delay == t.Delay && !rates, "that link has the topology's gbps and delay"})
	}
	return refuseUnused(list)
}

// eager reports whether all messages are one SEND of an engine.
func (s *Scenario) eager() bool {
	w := &s.Workload
	return (w.Kind == incastKind || w.Kind == connectionsKind) && w.Size.Fixed != 0 && w.Size.Fixed <= s.Engine.EagerBytes
}

// checkUnused refuses what of a variant its transport does not have.
func (v *Variant) checkUnused(n *NIC) error {
	no := "variant " + v.Name + " has transport " + v.Transport
	engines, tcp := v.Transport == rdmaTransport, v.Transport == tcpTransport || tcpProfiles[v.Transport] != nil
	ud := v.Transport == udTransport
	return refuseUnused([]unused{
		{"variants.control", v.Control != "", v.Transport != tcpTransport, no},
		{"variants.min_rto", v.MinRTO != 0, v.Transport != tcpTransport, no},
		{"variants.min_probe", v.MinProbe != 0, v.Transport != tcpTransport, no},
		{"variants.window_bytes", v.WindowBytes != 0, !engines, no},
		{"variants.window_target", v.WindowTarget != 0, !engines, no},
		{"variants.node_window_bytes", v.NodeWindowBytes != 0, !engines, no},
		{"variants.get", v.Get, !engines, no},
		{"variants.qp_per_socket", v.QPPerSocket, !engines, no},
		{"variants.mtu_bytes", v.MTU != 0, tcp, no + ", whose segments are of tcp.mss_bytes"},
		{"variants.page_bytes", v.PageBytes != 0, tcp || ud, no},
		{"variants.no_dcqcn", v.NoDCQCN, tcp || ud, no},
		{"variants.no_dcqcn", v.NoDCQCN, n.DCQCN == "off", `nic.dcqcn is "off"`},
	})
}

// fields are the workload's, by the kinds that have them; size and memory_bytes are of
// all.
func (w *Workload) fields() []field {
	return []field{
		{"senders", w.Senders != 0, []string{incastKind}},
		{"outstanding", w.Outstanding != 0, []string{incastKind, inferenceKind, connectionsKind, flowsKind}},
		{"flows", len(w.Flows) > 0, []string{flowsKind}},
		{"trainers", w.Trainers != 0, []string{trainingKind}},
		{"rankers", w.Rankers != 0, []string{inferenceKind}},
		{"servers", w.Servers != 0, []string{trainingKind, inferenceKind}},
		{"fanout", w.Fanout != 0, []string{inferenceKind}},
		{"replicas", w.Replicas != 0, []string{inferenceKind}},
		{"attempt_timeout", w.AttemptTimeout != 0, []string{inferenceKind}},
		{"deadline", w.Deadline != 0, []string{inferenceKind}},
		{"request_bytes", w.RequestBytes != 0, []string{inferenceKind}},
		{"lookup", w.Lookup != 0, []string{trainingKind, inferenceKind}},
		{"think", w.Think != 0, []string{inferenceKind}},
		{"reply_bytes", w.ReplyBytes != 0, []string{trainingKind}},
		{"load_percent", w.LoadPercent != 0, []string{trainingKind}},
		{"victim_bytes", w.VictimBytes != 0, []string{trainingKind}},
		{"victim_period", w.VictimPeriod != 0, []string{trainingKind}},
		{"clients", w.Clients != 0, []string{connectionsKind}},
		{"connections", w.Connections != 0, []string{connectionsKind}},
		{"rate_per_s", w.Rate != 0, []string{incastKind, connectionsKind}},
	}
}

type field struct {
	name  string
	set   bool
	kinds []string
}

func (f *field) of(kind string) bool { return slices.Contains(f.kinds, kind) }

// checkUnused refuses fields of other kinds of workloads.
func (w *Workload) checkUnused() error {
	for _, f := range w.fields() {
		if f.set && !f.of(w.Kind) {
			return errors.Errorf("workload.%s has no meaning for kind %q: leave it out, it is of %s", f.name, w.Kind, strings.Join(f.kinds, ", "))
		}
	}
	one := w.Replicas == 1
	return refuseUnused([]unused{
		{"workload.attempt_timeout", w.AttemptTimeout != 0, one, "with workload.replicas of 1 there is no other to try"},
		{"workload.deadline", w.Deadline != 0, one, "with workload.replicas of 1 a call waits as long as it takes"},
		{"workload.attempt_timeout", w.AttemptTimeout != 0, w.AttemptTimeout >= w.Deadline, "workload.deadline is not later"},
	})
}

// checkUnused refuses a sweep of what the workload does not have.
func (w *Sweep) checkUnused(s *Scenario) error {
	name := strings.TrimSuffix(w.Of, "_us")
	for _, f := range s.Workload.fields() {
		if f.name == name && !f.of(s.Workload.Kind) {
			return errors.Errorf("sweep.of is %q, which has no meaning for workload.kind %q: it is of %s", w.Of, s.Workload.Kind, strings.Join(f.kinds, ", "))
		}
	}
	for i, v := range w.Values {
		if slices.Contains(w.Values[:i], v) {
			return errors.Errorf("sweep.values has %d twice: leave one of them out", v)
		}
	}
	windows := slices.ContainsFunc(s.Variants, func(v Variant) bool { return v.Transport == rdmaTransport })
	return refuseUnused([]unused{
		{"sweep of window_bytes", w.Of == "window_bytes", !windows, "no variant has transport rdma"},
		{"sweep of memory_mib", w.Of == "memory_mib", s.NIC.MTTCache.Entries == 0, "nic.mtt_cache has no entries"},
	})
}
