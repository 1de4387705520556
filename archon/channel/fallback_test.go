package channel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testfault"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// rdmaPair is a server that listens over RDMA and TCP, and a client's faulty device.
type rdmaPair struct {
	fabric         *sim.Fabric
	server, client *sim.Device
	v              *server
	faults         *testfault.Device
	device         *channel.Device // the client's
	endpoint       channel.Endpoint
}

func newRDMAPair(t testing.TB, at testfault.Step) *rdmaPair {
	p := &rdmaPair{fabric: sim.NewFabric(sim.Config{})}
	var open func() (verbs.Context, error)
	p.server, open = openSim(t, p.fabric, "sim:server")
	dev := newDevice(t, open)
	p.v = startServer(t, "a", nil)
	p.client, open = openSim(t, p.fabric, "sim:client")
	p.faults = testfault.New(open)
	p.faults.Fail(at)
	p.device = newDevice(t, p.faults.Open)
	p.endpoint = channel.Endpoint{Name: "a", RDMA: p.v.listen(dev, "127.0.0.1:0"), TCP: p.v.tcp}
	return p
}

func (p *rdmaPair) channel(t testing.TB, cfg channel.Config) *channel.Channel {
	cfg.RDMA, cfg.Resolver = p.device, channel.Static(p.endpoint)
	return newChannel(t, cfg)
}

var setUpFaults = []struct {
	desc   string
	at     testfault.Step
	reason channel.Reason
	names  string // what the error says when there is no fallback
}{
	{"open device", testfault.Open, core.NoDevice, "open RDMA"},
	{"PD", testfault.PD, core.NoDomain, be.StepDomain},
	{"MR", testfault.MR, core.NoMemory, "register"},
	{"CQ create", testfault.CQ, core.NoCQ, be.StepCQ},
	{"CQ arm", testfault.Arm, core.NoArm, be.StepArm},
	{"QP create", testfault.QP, core.NoQP, be.StepQP},
	{"INIT", testfault.Init, core.InitFailed, be.StepInit},
	{"RTR", testfault.RTR, core.RTRFailed, "RTR"},
	{"RTS", testfault.RTS, core.RTSFailed, be.StepRTS},
	{"first SEND", testfault.Send, core.OpenFailed, be.StepOpen},
}

// TestFallbackAtEveryStep (case C20): with a fault at each step of the set-up, 100
// calls at once on 10 channels all succeed, over TCP, and the reason is counted once a
// channel; healed, RDMA is used again, but not before the settle time.
func TestFallbackAtEveryStep(t *testing.T) {
	for _, tt := range setUpFaults {
		t.Run(tt.desc, func(t *testing.T) {
			p := newRDMAPair(t, tt.at)
			var channels []*channel.Channel
			for range 10 {
				channels = append(channels, p.channel(t, channel.Config{}))
			}
			askAll(t, channels)
			for _, ch := range channels {
				st := stats(ch, "a")
				if st.Path != core.TCP || len(st.Fallbacks) != 1 || st.Fallbacks[tt.reason] != 1 {
					t.Fatalf("on %v, fallbacks %v, trouble %v", st.Path, st.Fallbacks, st.Trouble)
				}
			}
			if p.faults.Fails() == 0 {
				t.Fatal("the fault did not strike")
			}
			healed := time.Now()
			p.faults.Fail(testfault.None)
			for _, ch := range channels {
				eventually(t, "back on RDMA", func() bool { return stats(ch, "a").Path == core.RDMA })
				if d := time.Since(healed); d < quick().Settle {
					t.Errorf("back after %v, settle time %v", d, quick().Settle)
				}
			}
			askAll(t, channels)
			for _, ch := range channels {
				if st := stats(ch, "a"); len(st.Fallbacks) != 1 || st.Fallbacks[tt.reason] != 1 || st.Returns != 1 {
					t.Errorf("fallbacks %v, %d returns", st.Fallbacks, st.Returns)
				}
			}
		})
	}
}

// askAll makes ten calls at once on each channel.
func askAll(t *testing.T, channels []*channel.Channel) {
	t.Helper()
	ctx := limit(t)
	var wg sync.WaitGroup
	for _, ch := range channels {
		for i := range 10 {
			wg.Go(func() {
				want := strings.Repeat("payload", i*3000)
				if got, err := ask(ctx, ch, echo, want); err != nil || got != want {
					t.Errorf("%d bytes for %d: %v", len(got), len(want), err)
				}
			})
		}
	}
	wg.Wait()
}

// TestFallbackForbidden, the control: the same faults are errors that name the step.
func TestFallbackForbidden(t *testing.T) {
	for _, tt := range setUpFaults {
		t.Run(tt.desc, func(t *testing.T) {
			p := newRDMAPair(t, tt.at)
			r := quick()
			r.WaitReady = 20 * time.Millisecond
			ch := p.channel(t, channel.Config{NoFallback: true, Recovery: r})
			var err error
			eventually(t, "the trouble is known", func() bool {
				_, err = ask(limit(t), ch, echo, "x")
				return err == nil || strings.Contains(err.Error(), tt.names)
			})
			var e *channel.Error
			if !errors.As(err, &e) || !errors.Is(err, archon.Unavailable) || e.Why != core.NoReplica {
				t.Errorf("call: %v", err)
			}
			p.faults.Fail(testfault.None)
			eventually(t, "calls go over RDMA", func() bool { _, err := ask(limit(t), ch, echo, "x"); return err == nil })
		})
	}
}

// TestNoCommonRoCEVersion (case C04): a client whose port has the other RoCE version
// calls over TCP, for that reason, and without fallback hears of both versions. The
// control has the server's version.
func TestNoCommonRoCEVersion(t *testing.T) {
	for _, version := range []verbs.GIDType{verbs.GIDRoCEv1, verbs.GIDRoCEv2} {
		p := newRDMAPair(t, testfault.None)
		p.client.SetGIDs(1, []sim.GID{{GIDEntry: verbs.GIDEntry{GID: sim.DefaultGIDs(77, 1)[1], Type: version}}})
		ch := p.channel(t, channel.Config{})
		if _, err := ask(limit(t), ch, echo, "x"); err != nil {
			t.Fatal(err)
		}
		st := stats(ch, "a")
		if version == verbs.GIDRoCEv2 {
			if st.Path != core.RDMA || len(st.Fallbacks) != 0 {
				t.Errorf("control: on %v, fallbacks %v", st.Path, st.Fallbacks)
			}
			continue
		}
		if st.Path != core.TCP || len(st.Fallbacks) != 1 || st.Fallbacks[core.RoCEVersion] != 1 {
			t.Errorf("on %v, fallbacks %v", st.Path, st.Fallbacks)
		}
		r := quick()
		r.WaitReady = 20 * time.Millisecond
		only := p.channel(t, channel.Config{NoFallback: true, Recovery: r})
		eventually(t, "the error names both versions", func() bool {
			_, err := ask(limit(t), only, echo, "x")
			return err != nil && strings.Contains(err.Error(), "RoCE v1") && strings.Contains(err.Error(), "RoCE v2")
		})
	}
}

// TestServerWithoutRDMA and one that is still starting (case C20).
func TestServerWithoutRDMA(t *testing.T) {
	p := newRDMAPair(t, testfault.None)
	p.endpoint.RDMA = ""
	ch := p.channel(t, channel.Config{})
	if _, err := ask(limit(t), ch, echo, "x"); err != nil {
		t.Fatal(err)
	}
	if st := stats(ch, "a"); st.Path != core.TCP || st.Fallbacks[core.NoPeer] != 1 {
		t.Errorf("%+v", st)
	}
	// An address behind which something else listens.
	p.endpoint.RDMA = p.v.tcp
	ch = p.channel(t, channel.Config{})
	if _, err := ask(limit(t), ch, echo, "x"); err != nil {
		t.Fatal(err)
	}
	if st := stats(ch, "a"); st.Path != core.TCP || st.Fallbacks[core.Greeting]+st.Fallbacks[core.ProtocolBroken] != 1 {
		t.Errorf("%+v", st)
	}
}

func TestServerStillStarting(t *testing.T) {
	v := startServer(t, "a", nil)
	v.stop()
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: v.tcp})})
	answered := make(chan error)
	go func() {
		_, err := ask(limit(t), ch, echo, "x")
		answered <- err
	}()
	eventually(t, "a dial fails", func() bool { return stats(ch, "a").Trouble != nil })
	v.start()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// midLife are ways in which RDMA dies under calls, and heals.
var midLife = []struct {
	desc   string
	strike func(p *rdmaPair)
	heal   func(p *rdmaPair)
}{
	{"partition", func(p *rdmaPair) { p.fabric.Partition(p.server, p.client, true) }, func(p *rdmaPair) { p.fabric.Partition(p.server, p.client, false) }},
	{"port down, GID moved", func(p *rdmaPair) { p.client.SetPortState(1, verbs.PortDown) }, func(p *rdmaPair) {
		gids := sim.DefaultGIDs(77, 1)
		p.client.SetGIDs(1, []sim.GID{{}, {}, {}, {GIDEntry: verbs.GIDEntry{GID: gids[1], Type: verbs.GIDRoCEv2}}})
		p.client.SetPortState(1, verbs.PortActive)
	}},
	{"NIC removed and another put in", func(p *rdmaPair) {
		p.faults.Fail(testfault.Open)
		p.client.Remove()
	}, func(p *rdmaPair) {
		dev, _ := p.fabric.NewDevice("sim:client2", sim.DeviceConfig{})
		p.faults.Replace(dev.Open)
		p.faults.Fail(testfault.None)
	}},
}

// TestRDMADiesInMidLife (cases C17 and C19): calls under way and later ones succeed, over TCP, and return
// after the settle time. With no fallback, the control, there is none to succeed.
func TestRDMADiesInMidLife(t *testing.T) {
	for _, tt := range midLife {
		t.Run(tt.desc, func(t *testing.T) {
			p := newRDMAPair(t, testfault.None)
			ch := p.channel(t, channel.Config{})
			only := p.channel(t, channel.Config{NoFallback: true})
			l := startLoad(t, ch, 8)
			l.more(t, 100)
			if st := stats(ch, "a"); st.Path != core.RDMA {
				t.Fatalf("%+v", st)
			}
			for round := range uint64(2) {
				if round == 1 && strings.HasPrefix(tt.desc, "NIC") {
					break // it is removed once
				}
				tt.strike(p)
				eventually(t, "on TCP", func() bool { return stats(ch, "a").Path == core.TCP })
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				if _, err := ask(ctx, only, echo, "x"); err == nil {
					t.Error("control: a call without fallback succeeded")
				}
				cancel()
				l.more(t, 200)
				tt.heal(p)
				eventually(t, "back on RDMA", func() bool { return stats(ch, "a").Path == core.RDMA })
				l.more(t, 200)
				st := stats(ch, "a")
				n := uint64(0)
				for _, k := range st.Fallbacks {
					n += k
				}
				if n != round+1 || st.Returns != round+1 {
					t.Errorf("round %d: fallbacks %v, %d returns", round, st.Fallbacks, st.Returns)
				}
			}
			eventually(t, "without fallback calls succeed again", func() bool { _, err := ask(limit(t), only, echo, "x"); return err == nil })
			l.end()
			if st := ch.Stats(); st.Failed != 0 {
				t.Errorf("%+v", st.CallStats)
			}
		})
	}
}

// TestRDMAServerRestarts (case C19): a server ends without a word and another takes its
// addresses, at once and later. Calls go on as soon as it is there, over RDMA in the
// end, and it is known to be another.
func TestRDMAServerRestarts(t *testing.T) {
	p := newRDMAPair(t, testfault.None)
	ch := p.channel(t, channel.Config{})
	l := startLoad(t, ch, 4)
	l.more(t, 50)
	for round, down := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
		p.fabric.Partition(p.server, p.client, true) // no goodbye comes through
		p.v.stop()
		time.Sleep(down)
		p.v.start()
		var open func() (verbs.Context, error)
		p.server, open = openSim(t, p.fabric, fmt.Sprint("sim:server", round))
		dev := newDevice(t, open)
		p.v.listen(dev, p.endpoint.RDMA)
		t.Cleanup(p.v.stop) // before the device is closed
		l.more(t, 50)
		eventually(t, "on RDMA", func() bool { return stats(ch, "a").Path == core.RDMA })
		l.more(t, 50)
		if n := stats(ch, "a").Restarts; n != uint64(round+1) {
			t.Errorf("%d restarts seen, want %d", n, round+1)
		}
	}
	l.end()
	if st := ch.Stats(); st.Failed != 0 {
		t.Errorf("%+v", st.CallStats)
	}
}
