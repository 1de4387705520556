package fabric

import "testing"

// TestThresholds holds the rules for thresholds to the example of their paper: 12 MB,
// 32 ports of 40 Gb/s, 8 classes; within 0.1 %.
func TestThresholds(t *testing.T) {
	b := Buffer{Bytes: 12e6, Ports: 32, Classes: 8, Headroom: 22.4e3}
	if got := b.StaticPause() / 1000; !near(got, 24.47, 0.001) {
		t.Errorf("PFC's fixed threshold is %.3f KB, published 24.47", got)
	}
	if got := b.MarkBelow(8) / 1000; !near(got, 21.75, 0.001) {
		t.Errorf("ECN's bound is %.3f KB, published 21.75", got)
	}
}
