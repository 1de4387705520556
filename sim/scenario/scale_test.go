package scenario

import "testing"

// TestScale: a scenario of fewer hosts or more keeps its roles' shares, and what
// remains of the buffer beside headroom.
func TestScale(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hosts int
		roles [2]int // of the workload
	}{
		{"incast", 513, [2]int{512, 0}},
		{"incast", 2, [2]int{1, 0}},
		{"training", 48, [2]int{35, 13}},
		{"training", 470, [2]int{346, 124}},
		{"training", 940, [2]int{692, 248}},
		{"inference", 12, [2]int{4, 8}},
	} {
		s := load(t, tt.name)
		was := *s
		if err := s.Scale(tt.hosts); err != nil {
			t.Errorf("%s, %d hosts: %v", tt.name, tt.hosts, err)
			continue
		}
		w := &s.Workload
		if got := [2]int{w.Senders + w.Trainers + w.Rankers, w.Servers}; got != tt.roles || s.Topology.Hosts != tt.hosts {
			t.Errorf("%s, %d hosts: %v of the roles, want %v", tt.name, tt.hosts, got, tt.roles)
		}
		if _, err := s.buildFabric(&s.Variants[0]); err != nil {
			t.Errorf("%s, %d hosts: %v", tt.name, tt.hosts, err)
		}
		if s.Topology.Kind == "single" && s.Switch.BufferBytes-s.headroom() != was.Switch.BufferBytes-was.headroom() {
			t.Errorf("%s, %d hosts: %d bytes of buffer", tt.name, tt.hosts, s.Switch.BufferBytes)
		}
	}
	if err := load(t, "incast").Scale(1); err == nil {
		t.Error("an incast of one host")
	}
}

// TestDCQCNParams: a file may change parameters of congestion control one by one.
func TestDCQCNParams(t *testing.T) {
	s := load(t, "incast")
	d := DCQCN{Rai: 5, Gain: 8}
	got := d.over(dcqcnProfiles[s.NIC.DCQCN](100))
	want := dcqcnProfiles["paper15"](100)
	want.Rai, want.Gain = 5_000_000, 2*want.Gain // the paper has 1/256
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if off := d.over(dcqcnProfiles["off"](100)); off != dcqcnProfiles["off"](100) {
		t.Errorf("without congestion control: %+v", off)
	}
}
