package scenario

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestUnused: settings that contradict each other, or of which one would change nothing,
// are an error that names both. Each of them alone is none, nor is the file with its
// defaults.
func TestUnused(t *testing.T) {
	const (
		size       = `, "size": {"fixed": 1000}`
		incast     = `"workload": {"kind": "incast", "senders": 2` + size + `}`
		training   = `"workload": {"kind": "training", "trainers": 2, "servers": 2` + size
		inference  = `"workload": {"kind": "inference", "rankers": 2, "servers": 4` + size
		one        = `"topology": {"kind": "single"}`
		adaptive   = `"variants": ["adaptive"]`
		fast       = `"topology": {"kind": "single", "links": [{"host": 1, "gbps": 25}, {"host": 2, "gbps": 200}]}`
		crashFirst = `{"at": "100us", "kind": "crash", "host": 1}`
	)
	file := func(parts ...string) []byte {
		have := strings.Join(parts, ",")
		for _, d := range []string{one, incast, adaptive} {
			if key, _, _ := strings.Cut(d, ":"); !strings.Contains(have, key+":") {
				have += "," + d
			}
		}
		return []byte(`{"version": 1, "name": "x", "duration": "1ms",` + strings.TrimPrefix(have, ",") + `}`)
	}
	for _, tt := range []struct {
		with, without []string // parts of the file that are refused, and that are not
		want          []string
	}{
		{[]string{`"switch": {"lossy": true, "pause_quanta": true}`}, []string{`"switch": {"pause_quanta": true}`}, []string{"switch.pause_quanta has no effect", "switch.lossy drops frames"}},
		{[]string{`"switch": {"lossy": true}, "tcp": {"lossless": true}`}, []string{`"tcp": {"lossless": true}`}, []string{"tcp.lossless has no effect", "switch.lossy"}},
		{[]string{`"switch": {"egress_bytes": 90000}`}, []string{`"switch": {"egress_bytes": 90000}, "variants": ["tcp-cubic-5"]`}, []string{"switch.egress_bytes", "without switch.lossy"}},
		{[]string{`"switch": {"egress_bytes": 2000, "lossy": true}`}, []string{`"switch": {"egress_bytes": 2000, "lossy": true}, "nic": {"mtu_bytes": 1024}`}, []string{"switch.egress_bytes is 2000, want 4196 to"}},
		{[]string{`"nic": {"dcqcn_params": {"rmin_mbps": 100001}}`}, []string{`"nic": {"dcqcn_params": {"rmin_mbps": 100001}}, "variants": [{"name": "a", "gbps": 200}]`}, []string{"nic.dcqcn_params.rmin_mbps", "no link is as fast"}},
		{[]string{`"nic": {"mtt_cache": {"entries": 5}}, "engine": {"eager_bytes": 2000}, "workload": {"kind": "incast", "senders": 2, "memory_bytes": 2000000` + size + `}`}, []string{`"nic": {"mtt_cache": {"entries": 5}}, "workload": {"kind": "incast", "senders": 2, "memory_bytes": 2000000` + size + `}`}, []string{"workload.memory_bytes", "engine.eager_bytes"}},
		{[]string{`"switch": {"lossy": true, "buffer_bytes": 9000000, "egress_bytes": 9000001}`}, []string{`"switch": {"lossy": true, "buffer_bytes": 9000000, "egress_bytes": 9000000}`}, []string{"switch.egress_bytes", "switch.buffer_bytes is less"}},
		{[]string{`"switch": {"ecn_pmax": 0.5}`}, []string{`"switch": {"ecn_pmax": 0.5, "ecn_kmax_bytes": 5}`}, []string{"switch.ecn_pmax", "without switch.ecn_kmax_bytes"}},
		{[]string{`"switch": {"ecn_gbps": 25}`}, []string{`"switch": {"ecn_gbps": 25, "ecn_kmax_bytes": 5}`}, []string{"switch.ecn_gbps", "without switch.ecn_kmax_bytes"}},
		{[]string{`"topology": {"kind": "single", "links": [{"host": 1}]}`}, []string{`"topology": {"kind": "single", "links": [{"host": 1, "delay": "1us"}]}`}, []string{"topology.links of host 1", "the topology's gbps and delay"}},
		{[]string{`"topology": {"kind": "single", "gbps": 40, "links": [{"host": 1, "gbps": 40}]}`}, []string{`"topology": {"kind": "single", "gbps": 40, "links": [{"host": 1, "gbps": 40}]}, "variants": [{"name": "a", "gbps": 200}]`}, []string{"topology.links of host 1"}},
		{[]string{`"topology": {"kind": "single", "per_leaf": 4}`}, []string{`"topology": {"kind": "leafspine", "per_leaf": 4}`}, []string{"topology.per_leaf", "topology.kind is single"}},
		{[]string{`"topology": {"kind": "single", "spines": 4}`}, []string{`"topology": {"kind": "leafspine", "spines": 4}`}, []string{"topology.spines", "topology.kind is single"}},
		{[]string{`"topology": {"kind": "single", "up_gbps": 40}`}, []string{`"topology": {"kind": "leafspine", "up_gbps": 40}`}, []string{"topology.up_gbps"}},
		{[]string{`"topology": {"kind": "single", "up_delay": "2us"}`}, []string{`"topology": {"kind": "leafspine", "up_delay": "2us"}`}, []string{"topology.up_delay"}},
		{[]string{`"topology": {"kind": "pair"}, "switch": {"buffer_bytes": 9}, "workload": {"kind": "incast", "senders": 1` + size + `}`}, []string{`"topology": {"kind": "pair"}, "workload": {"kind": "incast", "senders": 1` + size + `}`}, []string{"switch.buffer_bytes", "topology.kind is pair"}},
		{[]string{`"nic": {"dcqcn": "off", "dcqcn_params": {"rai_mbps": 5}}`}, []string{`"nic": {"dcqcn_params": {"rai_mbps": 5}}`}, []string{"nic.dcqcn_params", `nic.dcqcn is "off"`}},
		{[]string{`"nic": {"dcqcn": "off"}, "variants": [{"name": "a", "no_dcqcn": true}]`}, []string{`"variants": [{"name": "a", "no_dcqcn": true}]`}, []string{"variants.no_dcqcn", `nic.dcqcn is "off"`}},
		{[]string{`"engine": {"free_cpu": true, "cpu_percent": 50}`}, []string{`"engine": {"cpu_percent": 50}`}, []string{"engine.cpu_percent", "engine.free_cpu"}},
		{[]string{`"engine": {"step_delay": "1us"}`}, []string{`"engine": {"step_delay": "1us", "free_cpu": true}`}, []string{"engine.step_delay", "engine.free_cpu"}},
		{[]string{`"engine": {"keepalive": "2ms", "peer_timeout": "1ms"}`}, []string{`"engine": {"keepalive": "1ms", "peer_timeout": "2ms"}`}, []string{"engine.keepalive", "engine.peer_timeout"}},
		{[]string{`"variants": [{"name": "a", "transport": "tcp-cubic-5", "window_bytes": 8192}]`}, []string{`"variants": [{"name": "a", "window_bytes": 8192}]`}, []string{"variants.window_bytes", "a has transport tcp-cubic-5"}},
		{[]string{`"variants": [{"name": "a", "transport": "tcp-cubic-5", "mtu_bytes": 1024}]`}, []string{`"variants": [{"name": "a", "transport": "rc", "mtu_bytes": 1024}]`}, []string{"variants.mtu_bytes", "tcp.mss_bytes"}},
		{[]string{`"variants": [{"name": "a", "transport": "rc", "get": true}]`}, []string{`"variants": [{"name": "a", "get": true}]`}, []string{"variants.get", "a has transport rc"}},
		{[]string{`"variants": [{"name": "a", "transport": "ud", "no_dcqcn": true}]`}, []string{`"variants": [{"name": "a", "transport": "rc", "no_dcqcn": true}]`}, []string{"variants.no_dcqcn", "a has transport ud"}},
		{[]string{training + `, "senders": 3}`}, []string{training + `}`}, []string{`workload.senders has no meaning for kind "training"`, "incast"}},
		{[]string{training + `, "outstanding": 3}`}, []string{inference + `, "outstanding": 3}`}, []string{"workload.outstanding has no meaning"}},
		{[]string{inference + `, "load_percent": 30}`}, []string{training + `, "load_percent": 30}`}, []string{"workload.load_percent has no meaning", "it is of training"}},
		{[]string{inference + `, "deadline": "9ms"}`}, []string{inference + `, "deadline": "9ms", "replicas": 2}`}, []string{"workload.deadline", "workload.replicas of 1"}},
		{[]string{inference + `, "replicas": 2, "attempt_timeout": "9ms", "deadline": "8ms"}`}, []string{inference + `, "replicas": 2, "attempt_timeout": "7ms", "deadline": "8ms"}`}, []string{"workload.attempt_timeout", "workload.deadline is not later"}},
		{[]string{`"sweep": {"of": "fanout", "values": [0]}`}, []string{inference + `}, "sweep": {"of": "fanout", "values": [1]}`}, []string{`sweep.of is "fanout"`, `workload.kind "incast"`}},
		{[]string{`"sweep": {"of": "lookup_us", "values": [5]}`}, []string{training + `}, "sweep": {"of": "lookup_us", "values": [5]}`}, []string{`sweep.of is "lookup_us"`, "training, inference"}},
		{[]string{`"sweep": {"of": "outstanding", "values": [2, 3, 2]}`}, []string{`"sweep": {"of": "outstanding", "values": [2, 3]}`}, []string{"sweep.values has 2 twice"}},
		{[]string{`"sweep": {"of": "window_bytes", "values": [8192]}, "variants": ["tcp-cubic-5"]`}, []string{`"sweep": {"of": "window_bytes", "values": [8192]}, "variants": ["tcp-cubic-5", "static"]`}, []string{"sweep of window_bytes", "no variant has transport rdma"}},
		{[]string{`"sweep": {"of": "memory_mib", "values": [0]}`}, []string{`"nic": {"mtt_cache": {"entries": 5}}, "sweep": {"of": "memory_mib", "values": [0]}`}, []string{"sweep of memory_mib", "nic.mtt_cache"}},
		{[]string{`"faults": [{"at": "0s", "kind": "down", "host": 1, "rate": 0.5}]`}, []string{`"faults": [{"at": "0s", "kind": "down", "host": 1}]`}, []string{`faults.rate of "down" has no meaning`}},
		{[]string{`"switch": {"lossy": true}, "faults": [{"at": "0s", "until": "1us", "kind": "stuck-pause", "host": 1}]`}, []string{`"faults": [{"at": "0s", "until": "1us", "kind": "stuck-pause", "host": 1}]`}, []string{"stuck-pause", "switch.lossy"}},
		{[]string{`"faults": [{"at": "0s", "kind": "slow", "host": 1, "percent": 200}], "variants": [{"name": "a", "transport": "rc"}]`}, []string{`"faults": [{"at": "0s", "kind": "slow", "host": 1, "percent": 200}]`}, []string{"slow", "a has transport rc"}},
		{[]string{`"tcp": {"free_cpu": true}, "faults": [{"at": "0s", "kind": "slow", "host": 1, "percent": 200}], "variants": ["tcp-cubic-5"]`}, []string{`"faults": [{"at": "0s", "kind": "slow", "host": 1, "percent": 200}], "variants": ["tcp-cubic-5"]`}, []string{"slow", "tcp.free_cpu"}},
		{[]string{`"faults": [{"at": "0s", "kind": "slow", "host": 1, "percent": 100}]`}, []string{`"faults": [{"at": "0s", "kind": "slow", "host": 1, "percent": 101}]`}, []string{"faults.percent", "as fast as without"}},
		{[]string{`"faults": [{"at": "0s", "kind": "slow-memory", "host": 1, "gbps": 40}], "variants": [{"name": "a", "gbps": 25}]`}, []string{`"faults": [{"at": "0s", "kind": "slow-memory", "host": 1, "gbps": 20}], "variants": [{"name": "a", "gbps": 25}]`}, []string{"faults.gbps", "variants.gbps of a"}},
		{[]string{fast + `, "faults": [{"at": "0s", "kind": "slow-memory", "host": 1, "gbps": 25}]`}, []string{fast + `, "faults": [{"at": "0s", "kind": "slow-memory", "host": 2, "gbps": 150}]`}, []string{"faults.gbps", "is 25, want 1 to 24"}},
		{[]string{fast + `, "nic": {"dcqcn_params": {"rmin_mbps": 200001}}`}, []string{fast + `, "nic": {"dcqcn_params": {"rmin_mbps": 200000}}`}, []string{"nic.dcqcn_params.rmin_mbps", "no link is as fast"}},
		{[]string{`"faults": [` + crashFirst + `, {"at": "200us", "kind": "down", "host": 1}]`}, []string{`"faults": [` + crashFirst + `, {"at": "50us", "kind": "down", "host": 1}]`}, []string{`faults.at of "down" is 200us, and the host has crashed at 100us`}},
		{[]string{`"faults": [{"at": "0s", "kind": "loss", "host": 1, "rate": 0.5}, {"at": "5us", "until": "9us", "kind": "corrupt", "host": 1, "rate": 0.1}]`}, []string{`"faults": [{"at": "0s", "until": "5us", "kind": "loss", "host": 1, "rate": 0.5}, {"at": "5us", "kind": "corrupt", "host": 1, "rate": 0.1}]`}, []string{`"corrupt" is 5us`, `"loss" from 0s`}},
	} {
		s, err := Parse(file(tt.without...))
		if err != nil {
			t.Errorf("%s: %v", tt.without, err)
			continue
		}
		full, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(full); err != nil {
			t.Errorf("with its defaults: %v: %s", err, full)
		}
		_, err = Parse(file(tt.with...))
		if err == nil {
			t.Errorf("%s: no error", tt.with)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", tt.with, err, want)
			}
		}
	}
}
