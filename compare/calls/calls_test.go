package calls

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestProgram(t *testing.T) {
	echo := func(int) (func() Echo, func(), error) {
		return func() Echo { return func(b []byte) ([]byte, error) { return b, nil } }, func() {}, nil
	}
	var out bytes.Buffer
	if err := Main([]string{"echo", "--size", "100", "--outstanding", "3", "--seconds", "0.02"}, &out, echo); err != nil {
		t.Fatal(err)
	}
	var row struct {
		Ops int64 `json:"ops"`
	}
	if err := json.Unmarshal(out.Bytes(), &row); err != nil || row.Ops < 3 {
		t.Errorf("%s: %v", out.Bytes(), err)
	}
	wrong := func(int) (func() Echo, func(), error) {
		return func() Echo { return func(b []byte) ([]byte, error) { return make([]byte, len(b)), nil } }, func() {}, nil
	}
	if Main([]string{"echo", "--seconds", "0.02"}, &out, wrong) == nil || Main([]string{"lat"}, &out, echo) == nil || Main([]string{"echo", "--size", "7"}, &out, echo) == nil {
		t.Error("a wrong answer or command line passes")
	}
}

func TestHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(1) << rng.IntN(40)
		d += time.Duration(rng.Int64N(int64(d)))
		h.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, share := range []float64{0.01, 0.5, 0.99, 1} {
		want := float64(all[int(share*float64(len(all)))-1]) / 1e3
		if got := h.at(share); got > want || got < want*63/64-1e-3 {
			t.Errorf("at %v: %v us, want %v", share, got, want)
		}
	}
}
