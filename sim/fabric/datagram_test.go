package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// TestUD holds unreliable datagrams to table 2 of the ByteExpress paper, within 5 %.
func TestUD(t *testing.T) {
	for _, c := range []struct {
		gbps int
		mtu  qp.MTU
		want float64
	}{{25, qp.MTU1024, 22.97}, {100, qp.MTU1024, 48.29}, {100, qp.MTU4096, 95.74}, {200, qp.MTU4096, 114.70}} {
		f, err := Pair(Config{Seed: 1, NIC: NICConfig{MTU: c.mtu}}, Link{Gbps: c.gbps, Delay: 10 * des.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		arrived, next := 0, 0
		f.Host(1).HandleDatagrams(func(from *Host, d *Datagram) {
			if from != f.Host(0) || d.Body != next || !d.Lossless {
				t.Errorf("datagram %d from host %d: %+v", next, from.ID(), d)
			}
			next++
			arrived += d.Bytes - udBytes
		})
		const span = des.Millisecond
		for i := range 60_000 {
			f.Host(0).SendUD(f.Host(1), c.mtu.Bytes(), i)
		}
		runTo(t, f, span)
		before := arrived
		runTo(t, f, 2*span)
		got := float64(arrived-before) * 8 / 1e6
		t.Logf("%d Gb/s, MTU %d: %.2f Gb/s, published %.2f", c.gbps, c.mtu.Bytes(), got, c.want)
		if !near(got, c.want, 0.05) {
			t.Errorf("%d Gb/s, MTU %d: %.2f Gb/s, want %.2f within 5 %%", c.gbps, c.mtu.Bytes(), got, c.want)
		}
	}
}

// blast has a host send so many lossy datagrams of 1518 bytes to another.
func blast(f *Fabric, from, to, n int, ecn bool) {
	for range n {
		f.Host(from).SendDatagram(f.Host(to), &Datagram{Flow: uint64(from), Bytes: 1518, ECN: ecn})
	}
}

// TestClassesShare: a link whose switch port has both classes to send is theirs by
// halves; control goes first.
func TestClassesShare(t *testing.T) {
	f, err := Single(Config{Seed: 1, SkipWrites: true, Switch: SwitchConfig{PFC: true, BufferBytes: 64 << 20, LossyShare: 8}}, 3, Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	bytes := 0
	f.Host(0).HandleDatagrams(func(_ *Host, d *Datagram) { bytes += d.Bytes })
	x, y := f.join(t, 1, 0, 1<<20, nil)
	x.stream(t, y, 1<<20, 4)
	blast(f, 2, 0, 10_000, false)
	runTo(t, f, 200*des.Microsecond)
	rdma := f.Host(0).Stats().BytesReceived
	was := bytes
	runTo(t, f, 700*des.Microsecond)
	a, b := float64(f.Host(0).Stats().BytesReceived-rdma), float64(bytes-was)
	t.Logf("of 500 us, RDMA had %.0f bytes of payload, datagrams %.0f", a, b)
	if !near(a, 500e-6*100e9/8/2*4096/4178, 0.02) || !near(b, 500e-6*100e9/8/2*1518/1538, 0.02) {
		t.Errorf("RDMA had %.0f bytes and datagrams %.0f, want a half each", a, b)
	}
	runTo(t, f, 3*des.Millisecond) // alone, RDMA has all
	was2 := f.Host(0).Stats().BytesReceived
	runTo(t, f, 3500*des.Microsecond)
	if a := float64(f.Host(0).Stats().BytesReceived - was2); !near(a, 500e-6*100e9/8*4096/4178, 0.02) {
		t.Errorf("alone, RDMA has %.0f bytes", a)
	}
	if p := f.PortTotals(); p.Drops != 0 {
		t.Errorf("%d drops", p.Drops)
	}
}

// TestLossyDrops: a queue of the lossy class holds a share of what is free, and never
// pauses anybody; marks are for those that allow them.
func TestLossyDrops(t *testing.T) {
	sw := SwitchConfig{PFC: true, BufferBytes: 2 << 20, LossyECN: ECN{KminBytes: 100_000, KmaxBytes: 100_000, Pmax: 1}}
	for _, ecn := range []bool{false, true} {
		f, err := Single(Config{Seed: 1, Switch: sw}, 5, Link{Gbps: 100, Delay: des.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		got, marked, peak := 0, 0, 0
		f.Host(0).HandleDatagrams(func(_ *Host, d *Datagram) {
			got++
			if d.Marked {
				marked++
			}
			peak = max(peak, f.Host(0).DownlinkDatagrams())
		})
		for i := 1; i < 5; i++ {
			blast(f, i, 0, 2000, ecn)
		}
		runTo(t, f, des.Never)
		p := f.PortTotals()
		free := f.switches[0].pool
		t.Logf("%d of 8000 came, %d marked, the queue held up to %d of %d bytes", got, marked, peak, free)
		if p.PausesSent != 0 || p.Drops != uint64(8000-got) || p.Drops == 0 || peak > free/2 || peak < free*2/5 {
			t.Errorf("%+v; %d came, the queue held up to %d of %d bytes, want a half", p, got, peak, free)
		}
		if ecn != (marked > 0) {
			t.Errorf("%d are marked", marked)
		}
	}
}
