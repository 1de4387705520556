package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// TestPauseQuanta: a pause of a millisecond is renewed each time that half of the 335.5 us
// that a frame can ask for is over, so that nothing comes meanwhile. If who pauses dies,
// it ends by itself. In the control, without quanta, it is asked for once, and for ever.
func TestPauseQuanta(t *testing.T) {
	for _, quanta := range []bool{true, false} {
		for _, dies := range []bool{false, true} {
			f, err := Single(Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{PFC: true, PauseQuanta: quanta}}, 2, Link{Gbps: 100, Delay: des.Microsecond})
			if err != nil {
				t.Fatal(err)
			}
			x, y := f.join(t, 1, 0, 1<<20, func(p *qp.Path) { p.AckTimeout = 12 })
			x.stream(t, y, 1<<20, 4)
			runTo(t, f, des.Millisecond)
			f.Host(0).StickPause(des.Millisecond)
			runTo(t, f, 1010*des.Microsecond)
			was := f.Host(0).Stats().BytesReceived
			if dies {
				f.Host(0).port.xoff = false // it renews nothing, and ends nothing
				f.Host(0).stuck = false
			}
			runTo(t, f, 1330*des.Microsecond)
			if n := f.Host(0).Stats().BytesReceived - was; n != 0 {
				t.Errorf("quanta %v, dies %v: %d bytes came over a link that is paused", quanta, dies, n)
			}
			runTo(t, f, 1990*des.Microsecond)
			if n := f.Host(0).Stats().BytesReceived - was; (n != 0) != (quanta && dies) {
				t.Errorf("quanta %v, dies %v: %d bytes came within the pause", quanta, dies, n)
			}
			want := uint64(1)
			if quanta && !dies {
				want = 6
			}
			if d := f.Host(0).Downlink(); d.PausesReceived != want {
				t.Errorf("quanta %v, dies %v: %d pauses, want %d", quanta, dies, d.PausesReceived, want)
			}
			if got := goodput(t, f, 0, 2300*des.Microsecond, des.Millisecond); !dies && !near(got, 98.03, 0.01) {
				t.Errorf("quanta %v: %.2f Gb/s afterwards", quanta, got)
			}
		}
	}
}
