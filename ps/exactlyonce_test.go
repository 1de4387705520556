package ps

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// testPush makes a push of key with gradient -1 by a shard of dimension 1.
func testPush(id requestID, key uint64) []byte {
	b := make([]byte, pushHeader+8+4)
	putRequestHeader(b, 1, 1, 0, 1)
	putRequestID(b, id)
	b[pushHeader] = byte(key)
	putFloat(b[pushHeader+8:], 0, -1)
	return b
}

func newTestShard(t testing.TB, cfg Config) *Shard {
	t.Helper()
	cfg.Dim, cfg.LearningRate = 1, 1
	if cfg.MaxRows == 0 {
		cfg.MaxRows = 1 << 10
	}
	s, err := NewShard(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *Shard) sum(keys uint64) (sum float64) {
	for key := range keys {
		if n := s.table.find(key, Hash(key)); n != 0 {
			sum += float64(s.table.row(n)[0])
		}
	}
	return sum
}

// TestExactlyOnce: whatever order, repetition and loss of requests and answers, with a
// snapshot and restore in between, the rows hold each push once. The control: without
// ids they do not.
func TestExactlyOnce(t *testing.T) {
	for seed := range uint64(200) {
		if got, want := exactlyOnce(t, seed, true); got != want {
			t.Errorf("seed %d: sum %v of %v pushes", seed, got, want)
		}
		if got, want := exactlyOnce(t, seed, false); got <= want {
			t.Errorf("seed %d, without ids: sum %v of %v pushes: the test repeats nothing", seed, got, want)
		}
	}
}

func exactlyOnce(t *testing.T, seed uint64, ids bool) (got, want float64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	s := newTestShard(t, Config{})
	type sent struct {
		b       []byte
		settled bool // its client has heard an answer
	}
	var pending []*sent // some of them delivered, perhaps often
	next := [3]uint64{}
	for range 1000 {
		switch rng.IntN(10) {
		case 0, 1, 2:
			if len(pending) > 50 {
				continue
			}
			c := rng.Uint64N(3)
			next[c]++
			id := requestID{ClientID{1 + c, c}, next[c]}
			if !ids {
				id = requestID{}
			}
			pending = append(pending, &sent{b: testPush(id, rng.Uint64N(5))})
			want++
		case 3:
			if ids && rng.IntN(20) == 0 {
				s = restored(t, s, Config{})
			}
		default:
			if len(pending) == 0 {
				continue
			}
			i := rng.IntN(len(pending))
			p := pending[i]
			if err := s.push(append([]byte(nil), p.b...)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			p.settled = rng.IntN(2) == 0 // else the answer is lost, and the client repeats
			if p.settled && rng.IntN(2) == 0 {
				pending = append(pending[:i], pending[i+1:]...) // no late copy of it comes
			}
		}
	}
	for _, p := range pending {
		if err := s.push(p.b); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	return s.sum(5), want
}

// TestWindowAgainstModel: what a window says is what a set of numbers says, or that it
// does not know.
func TestWindowAgainstModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var w window
		model, base := map[uint64]bool{}, uint64(1)
		for range 3000 {
			base += rng.Uint64N(3)
			seq := base + rng.Uint64N(200)
			switch v := w.look(seq); {
			case v == fresh && model[seq]:
				t.Fatalf("seed %d: %d was applied and is fresh", seed, seq)
			case v == applied && !model[seq]:
				t.Fatalf("seed %d: %d was not applied, and the window says so", seed, seq)
			case v == unknown && seq > w.floor:
				t.Fatalf("seed %d: %d is above the floor %d and unknown", seed, seq, w.floor)
			case v == fresh:
				w.add(seq)
				model[seq] = true
			}
			if len(w.spans) > maxSpans {
				t.Fatalf("seed %d: %d spans", seed, len(w.spans))
			}
		}
	}
}

// TestHorizon: what is older than a shard remembers is refused, not applied.
func TestHorizon(t *testing.T) {
	s := newTestShard(t, Config{MaxClients: 2})
	push := func(client, seq uint64, want error) {
		t.Helper()
		before := s.sum(1)
		err := s.push(testPush(requestID{ClientID{client, client}, seq}, 0))
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("push %d of client %d: %v, want %v", seq, client, err, want)
		}
		if want != nil && s.sum(1) != before {
			t.Errorf("push %d of client %d was refused and applied", seq, client)
		}
	}
	for i := range uint64(maxSpans + 10) {
		push(1, 2*i+2, nil) // a gap before each
	}
	push(1, 1, ErrForgotten)
	push(1, 2, ErrForgotten)
	push(1, 2*maxSpans+1, nil) // a gap that is remembered
	push(2, 1, nil)
	push(3, 1, nil) // client 1 is forgotten
	push(1, 1000, ErrForgotten)
	push(2, 1, nil) // a repetition
	push(3, 2, nil)
	push(4, 1, nil) // client 2, the least recently used, is forgotten
	push(2, 1, ErrForgotten)
	if got := s.sum(1); got != maxSpans+10+1+2+1+1 {
		t.Errorf("sum %v", got)
	}
	if err := s.push(testPush(requestID{ClientID{9, 9}, 0}, 0)); err == nil {
		t.Error("push 0 of a client was taken")
	}
	if err := s.push(testPush(requestID{ClientID{9, 9}, math.MaxUint64}, 0)); err == nil {
		t.Error("the last number was taken")
	}
}

// TestAdagrad compares with the formula computed in float64 and rounded at each step.
func TestAdagrad(t *testing.T) {
	s, err := NewShard(Config{Dim: 2, LearningRate: 0.1, Optimizer: Adagrad, Epsilon: 1e-3, InitialScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(4, 4))
	want, sums := [2]float32{InitialValue(0, 7, 0, 1), InitialValue(0, 7, 1, 1)}, [2]float32{}
	for n := range uint64(100) {
		b := make([]byte, pushHeader+8+8)
		putRequestHeader(b, 1, 2, 0, 1)
		b[pushHeader] = 7
		for i := range want {
			g := float32(rng.NormFloat64())
			putFloat(b[pushHeader+8:], i, g)
			sums[i] = float32(float64(sums[i]) + float64(float32(float64(g)*float64(g))))
			below := float32(float64(float32(math.Sqrt(float64(sums[i])))) + float64(float32(1e-3)))
			above := float32(float64(float32(0.1)) * float64(g))
			want[i] = float32(float64(want[i]) - float64(float32(float64(above)/float64(below))))
		}
		if err := s.push(b); err != nil {
			t.Fatal(err)
		}
		if got := s.table.row(s.table.find(7, Hash(7))); !sameBits(got, want[:]) {
			t.Fatalf("after %d: %v, want %v", n+1, got, want)
		}
		if v := s.Version(7); v != n+1 {
			t.Fatalf("version %d after %d", v, n+1)
		}
	}
}
