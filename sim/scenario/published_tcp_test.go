//go:build !race

package scenario

import (
	"fmt"
	"math"
	"testing"
)

// TestDCTCPQueues: two flows at 1 Gb/s with K of 20 packets hold the queue there, and 20
// flows at 40 Gb/s with K of 160 KB have 162.9 KB at the 90th percentile; a TCP that waits
// for losses fills the buffer; all use the whole link (Alizadeh et al., "Data Center TCP",
// SIGCOMM 2010, figures 1 and 13; DCQCN paper, figure 19).
func TestDCTCPQueues(t *testing.T) {
	const packet = 1518
	runs := experiment(t, fmt.Sprintf(`"version": 1, "name": "x", "duration": "800ms", "warmup": "300ms", "sample": "100us", "topology": {"kind": "single", "gbps": 1, "delay": "20us"},
		"switch": {"egress_bytes": 700000, "tcp_ecn_bytes": %d}, "tcp": {"free_cpu": true}, "workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 128, "flows": [%s]},
		"variants": [{"name": "dctcp", "transport": "tcp", "control": "dctcp", "min_rto": "10ms"}, {"name": "reno", "transport": "tcp", "control": "reno", "min_rto": "10ms"}]`,
		20*packet*10, flowsTo(2, "")))
	for name, r := range runs {
		holds(t, name+", Gb/s", r.gbps("message"), 0.949, 0.01)
	}
	dctcp, _, _ := runs["dctcp"].queue(0.5, 0.95)
	holds(t, "DCTCP's queue at P95, packets", dctcp/packet, 20, 0.2)
	if _, reno, _ := runs["reno"].queue(0.5, 1); reno < 10*dctcp {
		t.Errorf("TCP's mean queue is %.0f bytes, DCTCP's 95th percentile %.0f, want ten times that", reno, dctcp)
	}
	r := experiment(t, head+fmt.Sprintf(`, "duration": "30ms", "warmup": "15ms", "topology": {"kind": "single", "gbps": 40, "delay": "1us"},
		"switch": {"buffer_bytes": 12000000, "tcp_ecn_bytes": 40000}, "tcp": {"free_cpu": true, "ack_segments": 1},
		"workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 16, "flows": [%s]}, "variants": [{"name": "dctcp", "transport": "tcp", "control": "dctcp", "min_rto": "5ms"}]`, flowsTo(20, "")))["dctcp"]
	p90, _, _ := r.queue(0.5, 0.9)
	holds(t, "20 flows: the queue at P90, KB", p90/1000, 162.9, 0.1)
}

// queries has one host ask n others for a share of so many bytes each, again and again,
// over a switch whose ports are as said.
func queries(t *testing.T, n, share int, port, variants string) map[string]outcome {
	return experiment(t, fmt.Sprintf(`"version": 1, "name": "x", "duration": "1s", "drain": "3s", "sample": "1ms", "topology": {"kind": "single", "gbps": 1, "delay": "20us"},
		"switch": {"buffer_bytes": 67108864, %s}, "tcp": {"free_cpu": true},
		"workload": {"kind": "inference", "rankers": 1, "servers": %d, "size": {"fixed": %d}}, "variants": [%s]`, port, n, share, variants))
}

// TestDCTCPIncast: 1 MB in shares from n servers over a port with a buffer of 100 packets
// takes 8 ms and somewhat more. From 35 servers on TCP has timeouts in every query, and
// DCTCP seldom; with more, two packets of each overflow the buffer as well (DCTCP paper,
// figure 18).
func TestDCTCPIncast(t *testing.T) {
	const variants = `{"name": "tcp 300", "transport": "tcp", "control": "reno", "min_rto": "300ms", "min_probe": "1s"},
		{"name": "tcp 10", "transport": "tcp", "control": "reno", "min_rto": "10ms", "min_probe": "1s"},
		{"name": "dctcp 10", "transport": "tcp", "control": "dctcp", "min_rto": "10ms", "min_probe": "1s"}`
	ms := map[int]map[string]float64{}
	for _, n := range []int{10, 35, 45} {
		ms[n] = map[string]float64{}
		for name, r := range queries(t, n, 1_000_000/n, `"egress_bytes": 150000, "tcp_ecn_bytes": 300000`, variants) {
			ms[n][name] = float64(r.Class("fetch").MeanNS) / 1e6
			t.Logf("%d servers, %s: mean %.1f ms, %.2f timeouts a query", n, name, ms[n][name], float64(r.Counter("tcp_timeouts"))/float64(r.Class("fetch").Count))
		}
	}
	for _, n := range []int{10, 35} {
		holds(t, fmt.Sprintf("DCTCP, %d servers, ms", n), ms[n]["dctcp 10"], 9, 0.1)
	}
	if d := ms[35]["dctcp 10"]; ms[35]["tcp 10"] < 1.2*d || ms[35]["tcp 300"] < 20*d || ms[45]["dctcp 10"] < 1.2*d {
		t.Errorf("mean ms: %v", ms)
	}
}

// TestIncastCollapse: from eight servers on, whose 256 KB each come through a port of 64
// KB, a least timeout of 200 ms leaves a tenth of the link, and one of 1 ms nearly all
// (Vasudevan et al., "Safe and Effective Fine-grained TCP Retransmissions", SIGCOMM 2009).
func TestIncastCollapse(t *testing.T) {
	const share = 256 << 10
	for _, n := range []int{8, 16, 32} {
		for name, r := range queries(t, n, share, `"egress_bytes": 65536`, `{"name": "200 ms", "transport": "tcp", "control": "reno", "min_rto": "200ms", "min_probe": "1s"},
			{"name": "1 ms", "transport": "tcp", "control": "reno", "min_rto": "1ms", "min_probe": "1s"}`) {
			got := float64(n*share) * 8 / float64(r.Class("fetch").MeanNS)
			t.Logf("%d servers, %s: %.3f of the link, %d timeouts", n, name, got, r.Counter("tcp_timeouts"))
			if name == "200 ms" && got > 0.3 || name == "1 ms" && got < 0.7 {
				t.Errorf("%d servers, %s: %.3f of the link", n, name, got)
			}
		}
	}
}

// TestRandomLoss: windows under random loss follow Reno's law, the square root of 3/2p
// (Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm",
// 1997), and at a long round trip Cubic's (RFC 9438, 5.1: 187 segments at 100 ms and 1e-4).
func TestRandomLoss(t *testing.T) {
	window := func(rtt float64, delay, duration, sample, control string, p float64) float64 {
		r := experiment(t, fmt.Sprintf(`"version": 1, "name": "x", "duration": %q, "warmup": %q, "sample": %q, "topology": {"kind": "single", "gbps": 10, "delay": %q},
			"switch": {"lossy": true}, "tcp": {"free_cpu": true, "ack_segments": 1}, "faults": [{"at": "0s", "kind": "loss", "host": 1, "rate": %g}],
			"workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 64, "flows": [{"from": 1, "to": 0}]},
			"variants": [{"name": "tcp", "transport": "tcp", "control": %q}]`, duration, sample, sample, delay, p, control))["tcp"]
		return r.gbps("message") / 8 * rtt / 1460
	}
	for _, p := range []float64{1e-3, 1e-4} {
		holds(t, fmt.Sprintf("Reno's window, loss %g", p), window(1e6, "249us", "10s", "1s", "reno", p), math.Sqrt(1.5/p), 0.15)
	}
	holds(t, "Cubic's window", window(100e6, "25ms", "400s", "1s", "cubic", 1e-4), 187, 0.15)
}

// TestBufferSizing: one connection of Reno's keeps a link busy with a buffer of a product
// of rate and round trip (Villamizar and Song, "High Performance TCP in ANSNET", 1994). Its
// window goes from half of 1+b products to all of that, so of a link with a buffer of b it
// uses 3/4 (1+b)^2 / (1+b+b^2): three quarters with none (Appenzeller et al., "Sizing Router
// Buffers", SIGCOMM 2004, section 2).
func TestBufferSizing(t *testing.T) {
	const product, frame = 125_000, 3000 // bytes; a buffer has room for a frame anyway
	for _, b := range []float64{0.01, 0.25, 0.5, 1} {
		r := experiment(t, fmt.Sprintf(`"version": 1, "name": "x", "duration": "3s", "warmup": "1s", "sample": "1ms",
			"topology": {"kind": "dumbbell", "hosts": 2, "left": 1, "gbps": 10, "up_gbps": 1, "delay": "1us", "up_delay": "498us"},
			"switch": {"lossy": true, "egress_bytes": %d}, "tcp": {"free_cpu": true, "ack_segments": 1},
			"workload": {"kind": "flows", "size": {"fixed": 1000000}, "outstanding": 16, "flows": [{"from": 0, "to": 1}]},
			"variants": [{"name": "reno", "transport": "tcp", "control": "reno"}]`, int(b*product)+frame))["reno"]
		holds(t, fmt.Sprintf("share of the link, buffer of %g", b), r.gbps("message")*1538/1460, 0.75*(1+b)*(1+b)/(1+b+b*b), 0.02)
	}
}

// TestWaiting: packets that arrive at random at a port wait as long as the formula of
// Pollaczek and Khinchine says for equal lengths, r/2(1-r) of a packet's time at load r.
func TestWaiting(t *testing.T) {
	const hosts, packet = 32, (4096 + 8 + 82) * 0.08 // ns, at 100 Gb/s
	mean := func(load float64) float64 {
		r := experiment(t, fmt.Sprintf(`"version": 1, "name": "x", "duration": "60ms", "warmup": "5ms", "topology": {"kind": "single"}, "switch": {"buffer_bytes": 67108864}, "nic": {"dcqcn": "off"},
			"workload": {"kind": "flows", "size": {"fixed": 4096}, "flows": [%s]}, "variants": [{"name": "ud", "transport": "ud"}]`,
			flowsTo(hosts, fmt.Sprintf(`, "rate_per_s": %d`, int(load*1e9/packet/hosts)))))["ud"]
		return float64(r.Class("message").MeanNS)
	}
	law := func(load float64) float64 { return load / 2 / (1 - load) * packet }
	empty := mean(0.02) - law(0.02)
	for _, load := range []float64{0.5, 0.8, 0.9} {
		holds(t, fmt.Sprintf("load %g, ns of waiting", load), mean(load)-empty, law(load), 0.05)
	}
}
