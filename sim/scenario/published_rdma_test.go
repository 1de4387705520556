//go:build !race

package scenario

import (
	"fmt"
	"slices"
	"testing"
)

// TestUnfair: of four senders one has a port of the receiver's switch to itself, and the
// other three share one. With PFC alone it gets half of the link and they a sixth each;
// with DCQCN all have a quarter (DCQCN paper, figures 3 and 8).
func TestUnfair(t *testing.T) {
	runs := experiment(t, roce40+`, "duration": "60ms", "warmup": "35ms",
		"topology": {"kind": "graph", "gbps": 40, "delay": "1us", "places": [0, 0, 0, 1, 1], "trunks": [{"a": 0, "b": 1}]},
		"workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 16, "flows": [
			{"name": "h1", "from": 0, "to": 4}, {"name": "h2", "from": 1, "to": 4}, {"name": "h3", "from": 2, "to": 4}, {"name": "h4", "from": 3, "to": 4}]},
		"variants": [{"name": "pfc", "transport": "rc", "no_dcqcn": true}, {"name": "dcqcn", "transport": "rc"}]`)
	pfc, dcqcn := runs["pfc"], runs["dcqcn"]
	for _, h := range []string{"h1", "h2", "h3"} {
		holds(t, "PFC alone, "+h, pfc.gbps(h), 40./6*mtu1024, 0.05)
	}
	holds(t, "PFC alone, h4", pfc.gbps("h4"), 20*mtu1024, 0.05)
	j := jain(dcqcn.gbps("h1"), dcqcn.gbps("h2"), dcqcn.gbps("h3"), dcqcn.gbps("h4"))
	t.Logf("DCQCN: Jain %.4f", j)
	if j < 0.98 || pfc.Counter("pauses") == 0 || dcqcn.Counter("pauses") != 0 {
		t.Errorf("DCQCN: Jain %.3f, want 0.98; %d pauses, without %d", j, dcqcn.Counter("pauses"), pfc.Counter("pauses"))
	}
}

// TestVictim: four hosts of one rack, then also one or two of another, send to a host of
// a third. A flow from the first rack to a fourth has no congested link on its way, but
// PFC pauses what it shares with the others: its median falls from 20 Gb/s to 10 and
// below as senders are added with which it shares nothing (DCQCN paper, figures 4 and 9).
func TestVictim(t *testing.T) {
	seeds := 3
	if full() {
		seeds = 15
	}
	median := func(others int) float64 {
		flows := flowsOf(4, func(i int) string { return fmt.Sprintf(`{"name": "incast", "from": %d, "to": 7}`, i) }) + `, {"name": "victim", "from": 4, "to": 8}`
		for i := range others {
			flows += fmt.Sprintf(`, {"name": "incast", "from": %d, "to": 7}`, 5+i)
		}
		trunks := flowsOf(8, func(i int) string { return fmt.Sprintf(`{"a": %d, "b": %d}`, i/2, 4+i%2) })
		var rates []float64
		for seed := range seeds {
			r := experiment(t, roce40+fmt.Sprintf(`, "seed": %d, "duration": "24ms", "warmup": "12ms",
				"topology": {"kind": "graph", "gbps": 40, "delay": "1us", "places": [0, 0, 0, 0, 0, 2, 2, 3, 1], "trunks": [%s]},
				"workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 128, "flows": [%s]},
				"variants": [{"name": "pfc", "transport": "rc", "no_dcqcn": true}]`, seed+1, trunks, flows))
			rates = append(rates, r["pfc"].gbps("victim")/mtu1024)
		}
		slices.Sort(rates)
		t.Logf("%d senders of another rack: the victim has %.1f Gb/s", others, rates)
		return rates[len(rates)/2]
	}
	none, two := median(0), median(2)
	if two > none/2*1.1 {
		t.Errorf("the victim's median falls from %.1f to %.1f Gb/s, want to half at least", none, two)
	}
	if full() {
		holds(t, "no sender of another rack", none, 20, 0.1)
		holds(t, "one", median(1), 10, 0.1)
	}
}

// TestIncastDegrees: 2 to 16 senders use the link whole with DCQCN, and nobody is paused
// (DCQCN paper, section 6). A larger gain g makes the queue swing more (figure 14).
func TestIncastDegrees(t *testing.T) {
	spread := map[string]float64{}
	for _, c := range []struct{ n, gain, ms int }{{2, 4, 30}, {8, 4, 30}, {16, 4, 70}, {16, 64, 70}} {
		r := experiment(t, mark40+fmt.Sprintf(`, "duration": "%dms", "warmup": "20ms", "topology": {"kind": "single", "gbps": 40, "delay": "1us"},
			"nic": {"mtu_bytes": 1024, "dcqcn_params": {"gain_1024": %d}}, "workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 16, "flows": [%s]},
			"variants": [{"name": "rc", "transport": "rc"}]`, c.ms, c.gain, flowsTo(c.n, "")))["rc"]
		_, mean, s := r.queue(0.6, 1)
		what := fmt.Sprintf("%d senders, g %d/1024", c.n, c.gain)
		spread[what] = s
		t.Logf("%s: mean queue %.0f bytes, spread %.3f", what, mean, s)
		if got := r.gbps("message") / 40 / mtu1024; got < 0.99 || r.Counter("pauses") != 0 || r.Counter("dropped_packets") != 0 {
			t.Errorf("%s: %.3f of the link, %d pauses, %d drops", what, got, r.Counter("pauses"), r.Counter("dropped_packets"))
		}
	}
	if spread["16 senders, g 64/1024"] < 1.5*spread["16 senders, g 4/1024"] {
		t.Errorf("a larger gain does not make the queue swing more: %v", spread)
	}
}

// TestTwoFlows: a flow that joins another after 10 ms gets its share (DCQCN paper, figure
// 12: timer of 55 us and counter of 10 MB). With those of QCN, 1.5 ms and 150 KB, flows
// that begin with different rates stay apart in its fluid model; here a flow begins at the
// rate of the link, and they do not.
func TestTwoFlows(t *testing.T) {
	at := func(params string) float64 {
		r := experiment(t, mark40+fmt.Sprintf(`, "duration": "100ms", "warmup": "50ms", "topology": {"kind": "single", "gbps": 40, "delay": "1us"},
			"nic": {"mtu_bytes": 1024, "dcqcn_params": {%s}}, "workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 16, "flows": [
				{"name": "a", "from": 1, "to": 0}, {"name": "b", "from": 2, "to": 0, "at": "10ms"}]},
			"variants": [{"name": "rc", "transport": "rc"}]`, params))["rc"]
		return jain(r.gbps("a"), r.gbps("b"))
	}
	deployed, slow := at(""), at(`"increase_timer": "1500us", "increase_bytes": 150000`)
	t.Logf("Jain %.4f, with QCN's parameters %.4f", deployed, slow)
	if deployed < 0.98 {
		t.Errorf("Jain %.4f, want 0.98", deployed)
	}
}

// TestParkingLot: of three flows one crosses both bottlenecks, each of which it shares with
// one of the others. It has less than its fair half, and marks that begin by and by leave
// it more than those that begin at once (DCQCN paper, section 7).
func TestParkingLot(t *testing.T) {
	both := func(marks string) float64 {
		r := experiment(t, head+fmt.Sprintf(`, "duration": "70ms", "warmup": "30ms", "nic": {"mtu_bytes": 1024}, "switch": {"buffer_bytes": 12000000, %s},
			"topology": {"kind": "graph", "gbps": 40, "delay": "1us", "places": [0, 0, 1, 1, 1], "trunks": [{"a": 0, "b": 1}]},
			"workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 16, "flows": [
				{"name": "first", "from": 0, "to": 3}, {"name": "both", "from": 1, "to": 4}, {"name": "second", "from": 2, "to": 4}]},
			"variants": [{"name": "rc", "transport": "rc"}]`, marks))["rc"]
		for _, class := range []string{"first", "second"} {
			if sum := (r.gbps(class) + r.gbps("both")) / mtu1024; sum < 38 {
				t.Errorf("%s: the bottleneck of %s carries %.1f Gb/s", marks, class, sum)
			}
		}
		return r.gbps("both") / mtu1024
	}
	soft, hard := both(`"ecn_kmin_bytes": 5000, "ecn_kmax_bytes": 200000, "ecn_pmax": 0.01`), both(`"ecn_kmin_bytes": 40000, "ecn_kmax_bytes": 40000, "ecn_pmax": 1`)
	t.Logf("the flow over both has %.1f Gb/s, with one threshold %.1f", soft, hard)
	if soft > 20 || hard > 0.8*soft {
		t.Errorf("the flow over both has %.1f Gb/s, with one threshold %.1f, want less than 20, and 0.8 of that at most", soft, hard)
	}
}

// TestFeedbackDelay: ten flows whose feedback takes 85 us instead of 4 make the queue run
// empty and over in turn, which two do not (Zhu et al., "ECN or Delay", CoNEXT 2016,
// figures 4 and 5).
func TestFeedbackDelay(t *testing.T) {
	spread := func(n int, delay string) float64 {
		r := experiment(t, roce40+fmt.Sprintf(`, "duration": "60ms", "warmup": "30ms", "sample": "20us", "topology": {"kind": "single", "gbps": 40, "delay": %q},
			"workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 32, "flows": [%s]}, "variants": [{"name": "rc", "transport": "rc"}]`, delay, flowsTo(n, "")))["rc"]
		_, mean, s := r.queue(0.5, 1)
		t.Logf("%d flows, cables of %s: mean queue %.0f bytes, spread %.2f, %.2f Gb/s", n, delay, mean, s, r.gbps("message"))
		return s
	}
	two, ten := spread(2, "21us")/spread(2, "1us"), spread(10, "21us")/spread(10, "1us")
	if two > 1.3 || ten < 3 {
		t.Errorf("the delay spreads the queue of two flows %.2f times as far, want 1.3 at most; of ten %.2f times, want 3 at least", two, ten)
	}
}

// TestLivelock: of one lost packet in 256 a NIC that goes back to it keeps nine tenths of
// the rate; one that begins the message anew has none (Guo et al., "RDMA over Commodity
// Ethernet at Scale", SIGCOMM 2016, section 4.1).
func TestLivelock(t *testing.T) {
	const p, packet = 1. / 256, 221.2 // ns
	k := (2*(10+10+500+390) + 2*packet + 420) / packet
	r := experiment(t, roce40+`, "duration": "50ms", "warmup": "5ms", "topology": {"kind": "single", "gbps": 40, "delay": "10ns"}, "engine": {"ack_timeout": 5},
		"faults": [{"at": "0s", "kind": "loss", "host": 0, "rate": 0.00390625}],
		"workload": {"kind": "flows", "size": {"fixed": 1048576}, "outstanding": 8, "flows": [{"from": 1, "to": 0}]}, "variants": [{"name": "rc", "transport": "rc"}]`)["rc"]
	holds(t, "Gb/s", r.gbps("message"), 40*mtu1024*(1-p)/(1-p+p*k), 0.1)
}

// TestPauseStorm: a NIC that pauses its link without end stops everybody who sends to it
// and, by their own pauses, all that they send to others (the same, section 4.3). DCQCN
// does not help.
func TestPauseStorm(t *testing.T) {
	flows := flowsOf(15, func(i int) string {
		return fmt.Sprintf(`{"name": "other", "from": %d, "to": %d}, {"name": "paused", "from": %d, "to": 0}`, i+1, (i+1)%15+1, i+1)
	})
	for name, r := range experiment(t, roce40+fmt.Sprintf(`, "duration": "9ms", "sample": "100us", "topology": {"kind": "single", "gbps": 40, "delay": "1us"},
		"faults": [{"at": "1ms", "until": "9ms", "kind": "stuck-pause", "host": 0}],
		"workload": {"kind": "flows", "size": {"fixed": 65536}, "outstanding": 16, "flows": [%s]},
		"variants": [{"name": "pfc", "transport": "rc", "no_dcqcn": true}, {"name": "dcqcn", "transport": "rc"}]`, flows)) {
		g := r.Series.GoodputMbps
		before, after := slices.Max(g[:10]), slices.Max(g[80:])
		t.Logf("%s: %d Mb/s before, %d in the last ms of the storm", name, before, after)
		if before < 100_000 || after > before/50 {
			t.Errorf("%s: the storm leaves %d of %d Mb/s, want next to nothing", name, after, before)
		}
	}
}

// TestPermutation: in a fat tree every host sends to one other, and each flow takes one
// of the ways by chance. Some share links while others are idle: of the full rate 40 to
// 50 % are left (Raiciu et al., "Improving Datacenter Performance and Robustness with
// Multipath TCP", SIGCOMM 2011; Handley et al., "NDP", SIGCOMM 2017).
func TestPermutation(t *testing.T) {
	const k, hosts = 8, 128
	perm := func(i int) int { return (i*37 + 61) % hosts } // never itself, and rarely a neighbour
	r := experiment(t, head+fmt.Sprintf(`, "duration": "8ms", "warmup": "4ms", "topology": {"kind": "fattree", "k": %d, "gbps": 10, "delay": "1us"},
		"nic": {"mtu_bytes": 1024}, "switch": {"buffer_bytes": 2000000, "ecn_kmin_bytes": 5000, "ecn_kmax_bytes": 200000, "ecn_pmax": 0.01},
		"workload": {"kind": "flows", "size": {"fixed": 16384}, "outstanding": 64, "flows": [%s]}, "variants": [{"name": "rc", "transport": "rc"}]`,
		k, flowsOf(hosts, func(i int) string { return fmt.Sprintf(`{"from": %d, "to": %d}`, i, perm(i)) })))["rc"]
	holds(t, "share of the rate", r.gbps("message")/(hosts*10*mtu1024), 0.45, 0.2)
}

// randomTraffic has each of the 16 hosts of a fat tree send messages of some 60 KB to all
// others at random times, six tenths of what its link carries.
func randomTraffic(t *testing.T, more string) outcome {
	const hosts, mean = 16, 60_000
	flows := flowsOf(hosts*(hosts-1), func(i int) string {
		from := i / (hosts - 1)
		return fmt.Sprintf(`{"from": %d, "to": %d, "rate_per_s": %d}`, from, (from+1+i%(hosts-1))%hosts, 40_000_000_000*6/10/8/mean/(hosts-1))
	})
	return experiment(t, head+fmt.Sprintf(`, "duration": "2ms", "topology": {"kind": "fattree", "k": 4, "gbps": 40, "delay": "2us"}, %s,
		"workload": {"kind": "flows", "size": {"mean": %d, "p99": 250000}, "flows": [%s]}, "variants": [{"name": "rc", "transport": "rc"}]`, more, mean, flows))["rc"]
}

// TestPauseShare: the less of the free buffer an ingress port may hold, the more pauses
// there are ("RDMA over Commodity Ethernet at Scale", section 6.2: 1/64 in place of 1/16
// had far more).
func TestPauseShare(t *testing.T) {
	last := uint64(0)
	for _, part := range []int{8, 16, 64} {
		r := randomTraffic(t, fmt.Sprintf(`"nic": {"mtu_bytes": 1024},
			"switch": {"buffer_bytes": 2000000, "pause_share": %g, "ecn_kmin_bytes": 5000, "ecn_kmax_bytes": 200000, "ecn_pmax": 0.01}`, 1/float64(part)))
		n := r.Counter("pauses")
		t.Logf("a share of 1/%d: %d pauses, mean %d ns", part, n, r.Class("message").MeanNS)
		if n == 0 || n < 2*last {
			t.Errorf("a share of 1/%d: %d pauses, want twice the %d of the larger share", part, n, last)
		}
		last = n
	}
}

// TestLossyNetwork: without PFC, and without congestion control, go-back-N sends so much
// again that a loaded network breaks down (Mittal et al., "Revisiting Network Support for
// RDMA", SIGCOMM 2018: messages take 1.5 to 3 times as long). With it nothing is dropped here.
func TestLossyNetwork(t *testing.T) {
	for _, dcqcn := range []string{"off", "paper15"} {
		took := map[bool]int64{}
		for _, lossy := range []bool{false, true} {
			r := randomTraffic(t, fmt.Sprintf(`"switch": {"buffer_bytes": 960000, "lossy": %v, "ecn_kmin_bytes": 5000, "ecn_kmax_bytes": 200000, "ecn_pmax": 0.01},
				"nic": {"mtu_bytes": 1024, "dcqcn": %q}, "engine": {"ack_timeout": 7}`, lossy, dcqcn))
			took[lossy] = r.Class("message").MeanNS
			t.Logf("DCQCN %s, without PFC %v: mean %d ns of %d, %d drops, %d pauses, %d did not end", dcqcn, lossy, r.Class("message").MeanNS, r.Class("message").Count,
				r.Counter("dropped_packets"), r.Counter("pauses"), r.Class("message").Unfinished)
		}
		got := ratio(took[true], took[false])
		t.Logf("DCQCN %s: without PFC messages take %.2f times as long", dcqcn, got)
		if dcqcn == "off" && got < 1.5 {
			t.Errorf("without PFC and DCQCN messages take %.2f times as long, want 1.5 at least", got)
		}
	}
}
