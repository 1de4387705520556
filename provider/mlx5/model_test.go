//go:build linux

package mlx5_test

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
	"github.com/byteexpress/byteexpress/provider/mlx5"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/verbs"
)

var rig = kdevtest.Rig{
	Device: of(mlx5dev.Config{}),
	Kinds: map[string]func(testing.TB) verbs.Device{ // of driver and firmware
		"today": of(mlx5dev.Config{}), "registers at once": of(mlx5dev.Config{BFRegs: 16}),
		"completions by number": of(mlx5dev.Config{CQEVersion0: true}), "old": of(mlx5dev.Config{BFRegs: 16, CQEVersion0: true}),
		"long entries": with(mlx5.Settings{EntrySize: 128}), "payload inside": with(mlx5.Settings{Inside: true}),
		"payload in long entries": with(mlx5.Settings{EntrySize: 128, Inside: true}), "no BlueFlame": with(mlx5.Settings{BlueFlame: mlx5.BlueFlameNever}),
		"huge pages": with(mlx5.Settings{QueuePages: mlx5.PreferHuge, CompletionPages: mlx5.PreferHuge}),
	},
	Refused: atLimits,
}

// Names that the tests use on every other line.
var must, closeLater, noLeaks = kdevtest.Must, kdevtest.CloseLater, kdevtest.NoLeaks

// of gives the device with a configuration.
func of(cfg mlx5dev.Config) func(testing.TB) verbs.Device {
	return func(t testing.TB) verbs.Device { return device(t, cfg) }
}

// with gives the device with settings.
func with(s mlx5.Settings) func(testing.TB) verbs.Device {
	return func(t testing.TB) verbs.Device { return device(t, mlx5dev.Config{}).With(s) }
}

// device makes a model of a NIC. When the test ends, nothing that the provider told
// it may have broken a rule.
func device(t testing.TB, cfg mlx5dev.Config) *mlx5.Device {
	t.Helper()
	if !mmio.HasBarriers {
		t.Skip("no barriers for device memory on this processor")
	}
	f := sim.NewFabric(sim.Config{})
	hw, err := f.NewDevice("mlx5_0", mlx5dev.SimConfig())
	must(t, err)
	m := mlx5dev.New(hw, cfg)
	t.Cleanup(func() {
		for _, f := range m.Faults() {
			t.Error(f)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return mlx5.NewObserved(m.System(), m.Node(), m)
}

// atLimits asks for more than a queue pair can have, and for the most.
func atLimits(t *testing.T, p *kdevtest.Pair) {
	attr, err := p.Ctx.Attr()
	must(t, err)
	for _, caps := range []qp.Caps{{SendWR: 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1, Inline: attr.MaxInline + 1}, {SendWR: attr.MaxQPWR, RecvWR: 1, Inline: attr.MaxInline}} {
		if _, err := p.PD.CreateQP(verbs.QPConfig{SendCQ: p.A.CQ, RecvCQ: p.A.CQ, Caps: caps}); !errors.Is(err, verbs.ErrLimit) {
			t.Errorf("%+v: %v", caps, err)
		}
	}
	most := qp.Caps{SendWR: attr.MaxQPWR, RecvWR: attr.MaxQPWR, SendSGE: 4, RecvSGE: attr.MaxSGE}
	q, err := p.PD.CreateQP(verbs.QPConfig{SendCQ: p.A.CQ, RecvCQ: p.A.CQ, Caps: most})
	must(t, err)
	must(t, q.Close())
}
