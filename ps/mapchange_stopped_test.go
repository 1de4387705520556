//go:build unix

package ps_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/internal/testprocess"
	"github.com/byteexpress/byteexpress/ps"
)

// coordinatorEnv makes the test binary change a map, and stop itself, as by SIGSTOP, when it
// comes to a phase: the phase, then the texts of both maps.
const coordinatorEnv = "PS_TEST_COORDINATOR"

func init() {
	value := os.Getenv(coordinatorEnv)
	if value == "" {
		return
	}
	words := strings.SplitN(value, "|", 3)
	phase, err := strconv.Atoi(words[0])
	if err != nil {
		log.Fatal(err)
	}
	var maps [2]ps.Map
	for i := range maps {
		if err := maps[i].UnmarshalText([]byte(words[1+i])); err != nil {
			log.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = ps.RebalanceWatched(ctx, &maps[0], &maps[1], func(at int) {
		if at == phase {
			phase = -1
			fmt.Println("stops")
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	})
	fmt.Println("ends:", err)
	os.Exit(0)
}

// TestMapChangeStopped: who makes a change, or a replica of a shard that loses, gets or keeps
// its keys, is stopped when the change comes to each of its phases, for longer than leases
// and freezes last, and goes on then. No call fails, the change is made, and in the end
// every push is there once.
func TestMapChangeStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const shards, stopped = 3, 1500 * time.Millisecond
	cfg := channel.Config{Service: "ps", Recovery: channel.Recovery{PingInterval: 200 * time.Millisecond, PingTimeout: time.Second, RedialMax: 200 * time.Millisecond}}
	at, all := startMapReplicas(t, shards, shards, 400*time.Millisecond, "")
	now := ps.NewMap(ps.ByHash, at...)
	c, err := ps.NewMapClient(replicaDim, now, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	l := startPacedPushes(t, c, 4, time.Millisecond)
	l.more(50)
	rng := seededRand(t)
	for phase := range ps.Phases {
		next := *now
		next.Version++
		next.Bounds = ps.NewMap(ps.ByHash, at...).Bounds
		loses, gets := 1, 0 // the first range returns
		if now.Bounds[0].Shard == 0 {
			next.Bounds[0].Shard = 1
			loses, gets = 0, 1
		}
		victim := rng.IntN(5)
		desc := fmt.Sprintf("phase %d, %s is stopped", phase, []string{"who makes it", "who makes it, and is replaced,", "a losing replica", "a getting replica", "a replica of another shard"}[victim])
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		l.take()
		began := time.Now()
		if victim < 2 {
			var texts []string
			for _, m := range []*ps.Map{now, &next} {
				text, err := m.MarshalText()
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, string(text))
			}
			p := testprocess.New(t, coordinatorEnv, fmt.Sprint(phase, "|", texts[0], "|", texts[1]))
			p.Start()
			if said := p.Line(); said != "stops" {
				t.Fatalf("%s: %s", desc, said)
			}
			time.Sleep(stopped)
			if victim == 1 {
				if err := ps.Rebalance(ctx, now, &next, ps.RebalanceConfig{}); err != nil {
					t.Fatalf("%s: another one: %v", desc, err)
				}
			}
			p.Signal(syscall.SIGCONT)
			if said := p.Line(); said != "ends: <nil>" {
				t.Errorf("%s: %s", desc, said)
			}
			p.Kill()
		} else {
			of := []int{loses, gets, 2}[victim-2]
			replica := all[of][phase%mapReplicas]
			goesOn := make(chan struct{})
			stops := false
			err := ps.RebalanceWatched(ctx, now, &next, func(at int) {
				if at == phase && !stops {
					stops = true
					replica.Signal(syscall.SIGSTOP)
					time.AfterFunc(stopped, func() {
						replica.Signal(syscall.SIGCONT)
						close(goesOn)
					})
				}
			})
			if err != nil {
				t.Errorf("%s: %v", desc, err)
			}
			<-goesOn
		}
		cancel()
		took := time.Since(began)
		now = &next
		l.more(50)
		t.Logf("%s: the change took %v, p99 of the calls %v", desc, took, l.take())
		if t.Failed() {
			return
		}
	}
	l.stop()
	if got, want := l.sum(), float64(l.pushes.Load()); got != want || c.Map().Version != now.Version {
		t.Errorf("the rows hold %v pushes of %v; the client has map version %d of %d", got, want, c.Map().Version, now.Version)
	}
}
