//go:build linux

package mlx5_test

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
	"github.com/byteexpress/byteexpress/verbs"
)

// A doorbell register of its own is promised as long as there is one, and then
// refused; a driver that shares its registers cannot promise one.
func TestOwnDoorbell(t *testing.T) {
	for name, kind := range map[string]struct {
		cfg  mlx5dev.Config
		own  bool // some queue pairs have one
		want error
	}{
		"one by one": {mlx5dev.Config{}, true, verbs.ErrLimit}, "at once": {mlx5dev.Config{BFRegs: 16}, false, verbs.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, err := device(t, kind.cfg).Open()
			must(t, err)
			closeLater(t, ctx)
			pd, err := ctx.AllocPD()
			must(t, err)
			closeLater(t, pd)
			q, err := ctx.CreateCQ(verbs.CQConfig{Entries: 8})
			must(t, err)
			closeLater(t, q)
			cfg := verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: qp.Caps{SendWR: 1, RecvWR: 1}, OwnDoorbell: true}
			n, err := 0, error(nil)
			for ; err == nil && n <= 1000; n++ {
				var p qp.QP
				if p, err = pd.CreateQP(cfg); err == nil {
					closeLater(t, p)
				}
			}
			if !errors.Is(err, kind.want) || (n > 1) != kind.own {
				t.Errorf("queue pair %d: %v, want %v", n, err, kind.want)
			}
			cfg.OwnDoorbell = false
			p, err := pd.CreateQP(cfg)
			must(t, err)
			closeLater(t, p)
		})
	}
}
