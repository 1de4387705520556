package core

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// newSet gives a set of n replicas that are ready, with the tiers if there are some.
func newSet(t *testing.T, n int, tiers ...int) (*Set, []*Replica) {
	cfg, err := Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := NewSet(&cfg)
	for i := range n {
		r := &Replica{ID: uint32(i + 1), Key: mix(uint64(i) + 1)}
		if len(tiers) > 0 {
			r.Tier = tiers[i]
		}
		r.SetReady(true)
		s.Add(r)
	}
	return s, s.Replicas()
}

// TestLocality: farther replicas are asked only when no nearer one is good.
func TestLocality(t *testing.T) {
	s, list := newSet(t, 4, 1, 0, 1, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	tier := func() int {
		r, _ := s.Pick(time.Second, rng, &Wish{})
		return r.Tier
	}
	for range 100 {
		if tier() != 0 {
			t.Fatal("a far one was asked")
		}
	}
	list[0].SetReady(false)
	list[1].SetDraining(true)
	if tier() != 1 {
		t.Error("no far one was asked when no near one takes calls")
	}
	list[2].SetReady(false)
	list[3].SetReady(false)
	if r, _ := s.Pick(time.Second, rng, &Wish{}); r != list[1] {
		t.Errorf("picked %+v: the one that drains is all that is left", r)
	}
	if r, _ := s.Pick(time.Second, rng, &Wish{Not: []uint32{list[1].ID}, Other: true}); r != nil {
		t.Errorf("picked %+v: there is no other", r)
	}
}

// TestAffinity: a key keeps to its replica; when one leaves, only its keys move.
func TestAffinity(t *testing.T) {
	s, list := newSet(t, 5)
	rng := rand.New(rand.NewPCG(1, 1))
	home := map[uint64]*Replica{}
	count := map[*Replica]int{}
	for key := range uint64(1000) {
		r, _ := s.Pick(0, rng, &Wish{Affinity: key + 1})
		home[key] = r
		count[r]++
	}
	for _, r := range list {
		if count[r] < 120 || count[r] > 280 {
			t.Errorf("replica %d has %d of 1000 keys", r.ID, count[r])
		}
	}
	list[2].SetReady(false)
	for key, was := range home {
		r, _ := s.Pick(0, rng, &Wish{Affinity: key + 1})
		if r == list[2] || was != list[2] && r != was {
			t.Fatalf("key %d moved from %d to %d", key, was.ID, r.ID)
		}
	}
	for range 100 { // far more than its share
		s.Began(home[0])
	}
	if r, _ := s.Pick(0, rng, &Wish{Affinity: 1}); home[0] != list[2] && r == home[0] {
		t.Error("an overloaded replica got its key's call")
	}
}

// TestHalfOpenTakesOneProbe at a time.
func TestHalfOpenTakesOneProbe(t *testing.T) {
	s, list := newSet(t, 3)
	rng := rand.New(rand.NewPCG(1, 1))
	r := list[0]
	for range DefaultEjectConsecutive {
		s.Began(r)
		s.Ended(r, 0, time.Millisecond, Failed, false)
	}
	if !r.Ejected() {
		t.Fatal("not ejected")
	}
	at := DefaultEjectBase + time.Millisecond
	if p, probe := s.Pick(at, rng, &Wish{}); p == r || probe {
		t.Error("a call that may not be repeated is the first probe")
	}
	p, probe := s.Pick(at, rng, &Wish{Probe: true})
	if p != r || !probe {
		t.Fatalf("picked %d, probe %v", p.ID, probe)
	}
	if p, probe := s.Pick(at, rng, &Wish{Probe: true}); p == r || probe {
		t.Error("two probes at once")
	}
	s.Began(r)
	s.Ended(r, at, time.Millisecond, Failed, true)
	if p, _ := s.Pick(at+DefaultEjectBase, rng, &Wish{Probe: true}); p == r {
		t.Error("after a failed probe it is not kept out for longer")
	}
	at += 2*DefaultEjectBase + time.Millisecond
	p, probe = s.Pick(at, rng, &Wish{Probe: true})
	s.Began(p)
	s.Ended(p, at, time.Millisecond, Answered, probe)
	if p != r || !probe || r.Ejected() {
		t.Errorf("picked %d, probe %v, ejected %v after a good probe", p.ID, probe, r.Ejected())
	}
}

// TestConfigIsComplete: every field has a default and, but for those that say what a
// negative one means, a check.
func TestConfigIsComplete(t *testing.T) {
	full, err := Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	negative := map[string]bool{"AttemptTimeout": true, "RetryRatio": true, "RetryBurst": true, "WaitReady": true, "HedgeQuantile": true,
		"EjectConsecutive": true, "EjectRatio": true, "EjectShare": true}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() {
			t.Errorf("%s has no default", name)
		}
		var c Config
		switch f := reflect.ValueOf(&c).Elem().Field(i); f.Kind() {
		case reflect.Float64:
			f.SetFloat(-1)
		default:
			f.SetInt(-1)
		}
		_, err := c.WithDefaults()
		if ok := err == nil; ok != negative[name] {
			t.Errorf("%s = -1: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s = -1: %v does not name it", name, err)
		}
	}
}
