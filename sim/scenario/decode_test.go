package scenario

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/sim/des"
)

const minimal = `{"version": 1, "name": "x", "duration": "1ms", "topology": {"kind": "single"},
	"workload": {"kind": "incast", "senders": 2, "size": {"fixed": 1000}}, "variants": ["dcqcn"]}`

// TestBadFiles: what cannot be is an error that names the field, the value, the limit,
// and what to do.
func TestBadFiles(t *testing.T) {
	if _, err := Parse([]byte(minimal)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		old, new string   // what the minimal file has instead
		want     []string // in the error
	}{
		{`"version": 1`, `"version": 2`, []string{"version is 2, want 1"}},
		{`"name": "x"`, `"name": ""`, []string{`name is "", want 1 to 500 bytes`}},
		{`"name": "x"`, `"nam": "x"`, []string{"nam is not a key", "there are version, name"}},
		{`"name": "x"`, `"name": "x", "name": "y"`, []string{"name is there twice"}},
		{`"name": "x"`, `"name": 5`, []string{"name is a number, want text"}},
		{`"kind": "single"`, `"kind": "single", "perleaf": 3`, []string{"topology.perleaf is not a key", "per_leaf"}},
		{`"kind": "single"`, `"kind": "ring"`, []string{`topology.kind is "ring"`, "single, leafspine, pair"}},
		{`"kind": "single"`, `"kind": "single", "hosts": 2`, []string{"topology.hosts is 2", "the workload has 3", "leave it out"}},
		{`"kind": "single"`, `"kind": "single", "gbps": 1000`, []string{"topology.gbps is 1000, want 1 to 800"}},
		{`"kind": "single"`, `"kind": "single", "gbps": -4}, "switch": {"ecn_kmax_bytes": 5`, []string{"topology.gbps is -4, want 1 to 800"}},
		{`"kind": "single"`, `"kind": "single", "gbps": 2.5`, []string{"topology.gbps", "want a whole number"}},
		{`"duration": "1ms"`, `"duration": "1 fortnight"`, []string{`line 1: duration: is "1 fortnight"`, "want a time of 0s to 3600s"}},
		{`"duration": "1ms"`, `"duration": 5`, []string{"duration: is 5, want a time in text", `"10ms"`}},
		{`"duration": "1ms"`, `"duration": "2000s"`, []string{"duration is 2000s, want 1us to 1000s"}},
		{`"duration": "1ms"`, `"duration": "1ms", "warmup": "1ms"`, []string{"warmup is 1ms", "part of duration"}},
		{`"duration": "1ms"`, `"duration": "1s", "sample": "1us"`, []string{"sample is 1us, want at least 10us"}},
		{`"kind": "single"`, `"kind": "graph", "places": [0, 0]`, []string{"topology.places has 2 hosts, and the workload 3: give the switch of each"}},
		{`"kind": "single"`, `"kind": "fattree", "k": 2`, []string{"topology.k of 2 makes 2 hosts, and the workload has 3"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows", "flows": [{"from": 0, "to": 1, "rate_per_s": 9, "outstanding": 3}]`, []string{"flow 1 of 1: outstanding has no effect", "rate_per_s"}},
		{`"senders": 2`, `"senders": 0`, []string{"workload.senders is 0, want 1 to"}},
		{`"senders": 2`, `"senders": 2, "outstanding": 200`, []string{"workload.outstanding is 200, want 1 to 128"}},
		{`"kind": "incast"`, `"kind": "outcast"`, []string{`workload.kind is "outcast"`, "incast, training"}},
		{`"fixed": 1000`, `"fixed": -1`, []string{"workload.size.fixed is -1, want 1 to"}},
		{`"fixed": 1000`, `"fixed": 1000, "mean": 5`, []string{"fixed and mean", "leave one of them out"}},
		{`"fixed": 1000`, `"mean": 1000`, []string{"workload.size.p99 is 0, want 1000 to 14000"}},
		{`["dcqcn"]`, `[]`, []string{"variants is empty", "adaptive"}},
		{`["dcqcn"]`, `[], "switch": {"tcp_ecn_bytes": 5}`, []string{"variants is empty"}},
		{`["dcqcn"]`, `"dcqcn"`, []string{"variants is not a list"}},
		{`["dcqcn"]`, `["dcqcn", 3]`, []string{"variants[1] is a number, want a name or an object"}},
		{`["dcqcn"]`, `[{"name": "a", "gbps": "x"}]`, []string{"variants[0].gbps is a string, want"}},
		{`["dcqcn"]`, `["dcqnc"]`, []string{`variant "dcqnc"`, "one: tcp-cubic-200", "get-static"}},
		{`["dcqcn"]`, `["dcqcn", "dcqcn"]`, []string{`"dcqcn" twice`}},
		{`["dcqcn"]`, `[{"name": "a", "windw": 5}]`, []string{"variants.windw is not a key", "window_bytes"}},
		{`["dcqcn"]`, `[{"name": "a", "window_bytes": 5}]`, []string{`window_bytes of "a" is 5, want 8192`}},
		{`["dcqcn"]`, `[{"name": "a", "transport": "udp"}]`, []string{`transport is "udp"`, "tcp-cubic-5"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"mtu_bytes": 1500}`, []string{"nic.mtu_bytes is 1500", "4096"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"dcqcn": "on"}`, []string{`nic.dcqcn is "on"`, "paper15"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"dcqcn_params": {"rai_mbps": -1}}`, []string{"nic.dcqcn_params.rai_mbps is -1, want 0 to"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"cache": "cx7"}`, []string{`nic.cache is "cx7"`, "cx6"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"mtt_cache": {"entries": -1}}`, []string{"nic.mtt_cache.entries is -1, want 0 to"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"wqe_cache": {"entries": 5, "fetches": 2000}}`, []string{"nic.wqe_cache.fetches is 2000, want 1 to 1024"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"wqe_cache": {"entries": 5, "miss": "2ms"}}`, []string{"nic.wqe_cache.miss is 2ms, want 1ns to 1ms"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"mtt_cache": {"fetches": 5}}`, []string{"nic.mtt_cache has fetches or miss and no entries"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"mtt_cache": {"pages": 5}}`, []string{"nic.mtt_cache.pages is not a key", "entries, fetches, miss"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"page_bytes": 4096}`, []string{"nic.page_bytes is 4096 and nic.mtt_cache has no entries"}},
		{`["dcqcn"]`, `[{"name": "a", "page_bytes": 4096}]`, []string{"variants.page_bytes is 4096 and nic.mtt_cache has no entries"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"mtt_cache": {"entries": 5}, "page_bytes": 5000}`, []string{"nic.page_bytes is 5000, want a power of two"}},
		{`"senders": 2`, `"senders": 2, "memory_bytes": 1048576`, []string{"workload.memory_bytes is 1048576 and nic.mtt_cache has no entries"}},
		{`["dcqcn"]`, `["dcqcn"], "nic": {"mtt_cache": {"entries": 5}}, "sweep": {"of": "memory_mib", "values": [1, 5000]}`, []string{"sweep.values: at 5000", "workload.memory_bytes is 5242880000, want 1048576 to 4294967296"}},
		{`["dcqcn"]`, `["dcqcn"], "switch": {"ecn_kmin_bytes": 5}`, []string{"switch.ecn_kmin_bytes is 5, want 0 to 0", "ecn_kmax_bytes"}},
		{`["dcqcn"]`, `["dcqcn"], "switch": {"ecn_kmax_bytes": 9, "ecn_pmax": 2}`, []string{"switch.ecn_pmax is 2, want 0 to 1"}},
		{`["dcqcn"]`, `["dcqcn"], "engine": {"retry_count": 9}`, []string{"engine.retry_count is 9, want 1 to 7"}},
		{`["dcqcn"]`, `["dcqcn"], "sweep": {"of": "size", "values": [1]}`, []string{`sweep.of is "size"`, "senders"}},
		{`["dcqcn"]`, `["dcqcn"], "sweep": {"of": "senders", "values": []}`, []string{"sweep.values is empty"}},
		{`["dcqcn"]`, `["dcqcn"], "sweep": {"of": "senders", "values": [2, 0]}`, []string{"sweep.values: at 0", "hosts is 1, want 2"}},
		{`["dcqcn"]`, `["dcqcn"], "sweep": {"of": "jitter_us", "values": [-5]}`, []string{"sweep.values has -5, want 0 to"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "0s", "kind": "fire"}]`, []string{`faults.kind is "fire"`, "switch-down"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "0s", "kind": "down"}]`, []string{`faults.host of "down" is missing`, "want 0 to 2"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "2ms", "kind": "down", "host": 1}]`, []string{"faults.at", "at most duration, 1ms"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "0s", "kind": "loss", "host": 1}]`, []string{`fault 1 of 1: faults.rate of "loss" is 0`}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "0s", "kind": "crash", "host": 1, "until": "1ms"}]`, []string{"does not come back"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "0s", "kind": "down", "host": 1, "leaf": 1}]`, []string{"faults.leaf", "leave it out"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "0s", "kind": "uplink-down", "switch": 0, "leaf": 0}]`, []string{"needs links between switches"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": "0s", "kind": "switch-down", "switch": 1}]`, []string{"faults.switch", "want 0 to 0"}},
		{`"kind": "single"`, `"kind": "single", "spines": 2`, []string{"topology.spines has no effect", "single"}},
		{`"kind": "single"`, `"kind": "fattree", "k": 3`, []string{"topology.k is 3", "even number"}},
		{`"kind": "single"`, `"kind": "fattree", "k": 4, "hosts": 15`, []string{"topology.k is 4 with 15 hosts"}},
		{`"kind": "single"`, `"kind": "dumbbell", "left": 3`, []string{"topology.left is 3, want 1 to 2"}},
		{`"kind": "single"`, `"kind": "graph"`, []string{"topology.places has 0 hosts"}},
		{`"kind": "single"`, `"kind": "graph", "places": [0, 1, 2], "trunks": [{"a": 0, "b": 1}]`, []string{"no way from switch 0 to switch 2"}},
		{`"kind": "single"`, `"kind": "graph", "places": [0, 0, 1], "trunks": [{"a": 0}]`, []string{"joins switch 0 to itself"}},
		{`"kind": "single"`, `"kind": "graph", "places": [0, 0, 1], "trunks": [{"a": 0, "b": 1}, {"a": 1, "b": 0, "gbps": 40}]`, []string{"topology.trunks joins switches 0 and 1 twice"}},
		{`"kind": "single"`, `"kind": "graph", "places": [0, 0, -1]`, []string{"topology.places is -1, want 0 to 999"}},
		{`"kind": "single"`, `"kind": "graph", "places": [0, 0, 1], "trunks": [{"a": 0, "b": 1, "gbps": 9000}]`, []string{"topology.trunks.gbps is 9000"}},
		{`"kind": "single"`, `"kind": "single", "links": [{"host": 7, "gbps": 25}]`, []string{"topology.links.host is 7, want 0 to 2"}},
		{`"kind": "single"`, `"kind": "single", "links": [{"host": 1, "gbps": 25}, {"host": 1, "gbps": 25}]`, []string{"host 1 twice"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows"`, []string{"workload.flows is empty"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows", "flows": [{"from": 1}, {"to": 1}, {"from": 1, "to": 1}]`, []string{"flow 3 of 3: from and to are 1"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows", "flows": [{"from": 1, "to": 0, "at": "1ms"}]`, []string{"flow 1 of 1: at is 1ms and until 1ms"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows", "flows": [{"from": 1, "to": 0, "until": "2ms"}]`, []string{"until 2ms", "within duration, 1ms"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows", "flows": [{"from": 1, "to": -1}]`, []string{"workload.flows.to is -1, want 0 to 19999"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows", "flows": [{"from": 1, "to": 0, "size": {"fixed": -5}}]`, []string{"flow 1 of 1: size.fixed is -5"}},
		{`"senders": 2`, `"senders": 2, "flows": [{"from": 1, "to": 0}]`, []string{`workload.flows has no meaning for kind "incast"`}},
		{`["dcqcn"]`, `[{"name": "a", "control": "reno"}]`, []string{"variants.control has no effect", "variant a has transport rdma"}},
		{`["dcqcn"]`, `[{"name": "a", "transport": "tcp", "control": "vegas"}]`, []string{`variants.control is "vegas"`, "dctcp"}},
		{`["dcqcn"]`, `[{"name": "a", "transport": "tcp", "min_rto": "2s"}]`, []string{`variants.min_rto or min_probe of "a" is 2s`}},
		{`["dcqcn"]`, `["dcqcn"], "switch": {"pause_share": 0.5, "pause_bytes": 5}`, []string{"switch.pause_share has no effect, as switch.pause_bytes"}},
		{`"name": "x"`, `"name": "x\u001b[31m"`, []string{`name is "x\x1b[31m"`, "can be printed"}},
		{`"name": "x"`, `"name": "x", "about": "</svg>\n"`, []string{"about is"}},
		{`["dcqcn"]`, `[{"name": "\u0000"}]`, []string{"variants.name is"}},
		{`"kind": "incast", "senders": 2`, `"kind": "flows", "flows": [{"name": "../../x", "from": 1, "to": 0}]`, []string{`flow 1 of 1: name is "../../x"`, "files of that name"}},
		{`["dcqcn"]}`, `["dcqcn"]} {}`, []string{"more after the object"}},
		{`["dcqcn"]}`, `["dcqcn"]`, []string{"line 2: not JSON"}},
		{`["dcqcn"]`, `["dcqcn"], "faults": [{"at": 5, "kind": "down", "host": 1}]`, []string{"line 2: faults.at: is 5"}},
		{`["dcqcn"]`, `["dcqcn"] "nic": {}`, []string{"line 2: not JSON"}},
	} {
		if !strings.Contains(minimal, tt.old) {
			t.Fatalf("the file has no %s", tt.old)
		}
		_, err := Parse([]byte(strings.Replace(minimal, tt.old, tt.new, 1)))
		if err == nil {
			t.Errorf("%s: no error", tt.new)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", tt.new, err, want)
			}
		}
	}
}

// TestFirstBytes: a byte order mark does no harm; a file without anything, or with
// something else than an object, is an error that says so.
func TestFirstBytes(t *testing.T) {
	if _, err := Parse([]byte("\ufeff" + minimal)); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{"": "empty", " \n": "empty", "[]": "the file is a list, want an object", `"x"`: "the file is a string", "null": "version is 0"} {
		if _, err := Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v lacks %q", file, err, want)
		}
	}
}

// FuzzParse: no file makes the reader panic, and what it took it takes again as it
// writes it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	for _, name := range Names() {
		b, err := Source(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := Parse(file)
		if err != nil {
			return
		}
		once, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		s, err = Parse(once)
		if err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		if again, err := json.Marshal(s); err != nil || string(again) != string(once) {
			t.Errorf("%s\nbecomes %s (%v)", once, again, err)
		}
	})
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]des.Time{
		"0s": 0, "300ns": 300 * des.Nanosecond, "2.5us": 2500 * des.Nanosecond, "10ms": 10 * des.Millisecond, "1s": des.Second, "1500us": 1500 * des.Microsecond,
	} {
		var s, again Span
		if err := s.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil || s.time() != want {
			t.Errorf("%s is %v (%v), want %d ps", text, s, err, want)
		}
		if b, err := s.MarshalJSON(); err != nil || again.UnmarshalJSON(b) != nil || again != s {
			t.Errorf("%s is written as %s (%v)", text, b, err)
		}
	}
}
