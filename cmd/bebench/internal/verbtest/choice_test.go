package verbtest

import (
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// Without a choice the best port and GID are used; a choice is obeyed, also when
// another would work.
func TestChoiceOfPortAndGID(t *testing.T) {
	fabric := sim.NewFabric(sim.Config{})
	defer fabric.Close()
	down := sim.Port{PortAttr: verbs.PortAttr{State: verbs.PortDown}}
	slow := sim.Port{PortAttr: verbs.PortAttr{SpeedGbps: 25}}
	dev, err := fabric.NewDevice("three", sim.DeviceConfig{Ports: []sim.Port{down, slow, {}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		port, gid int
		want      int
		wantGID   string
	}{{0, -1, 3, "::ffff:"}, {2, -1, 2, "::ffff:"}, {0, 0, 3, "fe80:"}, {2, 0, 2, "fe80:"}} {
		d, err := Describe(dev, &Params{Port: tt.port, GIDIndex: tt.gid})
		if err != nil || d.Port != tt.want || !strings.HasPrefix(d.GID, tt.wantGID) {
			t.Errorf("-i %d -x %d: %+v, %v; want port %d, GID %s", tt.port, tt.gid, d, err, tt.want, tt.wantGID)
		}
	}
	if _, err := Describe(dev, &Params{Port: 1, GIDIndex: -1}); err == nil || !strings.Contains(err.Error(), "port 1 is DOWN") {
		t.Errorf("the port that is down was asked for: %v", err)
	}
}
