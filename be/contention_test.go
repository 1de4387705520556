package be_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/internal/testmodel"
)

// modulePath is cut from the names of functions.
const modulePath = "github.com/byteexpress/byteexpress/"

// allowedLocks are the packages whose locks may be met on the data path.
var allowedLocks = map[string]string{
	"sim":         "the simulated NIC: what it does under a lock, a real one does in its circuits",
	"sim/nic":     "the same",
	"sim/mlx5dev": "the model of a ConnectX NIC, on the simulated one",
	"bemalloc":    "the pool's shared lists: a batch of small buffers at a time, or one large buffer",
}

// waits gives the stacks where goroutines waited while f ran: for locks, by the profile
// of those who held them and of those who wanted them, and for anything else. Innermost
// functions are first.
func waits(f func()) (stacks [][]string) {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	before := profiles()
	f()
	after := profiles()
	runtime.SetMutexProfileFraction(0)
	runtime.SetBlockProfileRate(0)
	for key, n := range after {
		if n > before[key] {
			stacks = append(stacks, strings.Split(key, " < "))
		}
	}
	return stacks
}

// profiles gives how often each stack is in the mutex and the block profile so far.
func profiles() map[string]int64 {
	counts := map[string]int64{}
	for _, profile := range []func([]runtime.BlockProfileRecord) (int, bool){runtime.MutexProfile, runtime.BlockProfile} {
		var records []runtime.BlockProfileRecord
		n, ok := profile(nil)
		for !ok {
			records = make([]runtime.BlockProfileRecord, n+100)
			n, ok = profile(records)
		}
		for _, r := range records[:n] {
			var names []string
			for frames := runtime.CallersFrames(r.Stack()); ; {
				f, more := frames.Next()
				names = append(names, strings.TrimPrefix(f.Function, modulePath))
				if !more {
					break
				}
			}
			counts[strings.Join(names, " < ")] += r.Count
		}
	}
	return counts
}

// packageOf is the package of a function's name.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	dot := strings.IndexByte(function[slash:], '.')
	return function[:slash+max(dot, 0)]
}

// onDataPath gives the stacks that must not be: a lock that is met by what this package,
// its core, or a provider does for messages, and whatever a worker's turn waits for. An
// application's goroutine may wait for messages; a worker that has nothing to do may
// wait, for the device and for others that arm their queues. The runtime has spin locks
// of its own for what wakes a goroutine.
func onDataPath(stacks [][]string) (bad []string) {
	for _, s := range stacks {
		if s[0] == "runtime.unlock" {
			continue
		}
		ours, working, idle, lock := false, false, false, strings.HasPrefix(s[0], "sync.(*Mutex)") || strings.HasPrefix(s[0], "sync.(*RWMutex)")
		for _, f := range s {
			p := packageOf(f)
			ours = ours || p == "be" || strings.HasPrefix(p, "be/") || strings.HasPrefix(p, "provider/")
			working = working || f == "be.(*worker).turn" || f == "be.(*worker).poll"
			idle = idle || f == "be.(*worker).sleep"
		}
		owner := s[0]
		for _, f := range s {
			if p := packageOf(f); p != "sync" && p != "runtime" && p != "internal/sync" {
				owner = f
				break
			}
		}
		if _, ok := allowedLocks[packageOf(owner)]; !ok && ours && (working || lock && !idle) {
			bad = append(bad, strings.Join(s, " < "))
		}
	}
	return bad
}

// saturation is sockets that are never without messages, several on each engine.
type saturation struct {
	p      *pair
	socks  [][2]*be.Socket
	size   int
	posted func() // before each message ends, on the worker
}

func newSaturation(t *testing.T, cfg be.Config, size int) *saturation {
	s := &saturation{p: newPair(t, cfg), size: size, posted: func() {}}
	for i := range 6 {
		server, client := s.p.connect(t, fmt.Sprint(i))
		s.socks = append(s.socks, [2]*be.Socket{server, client})
	}
	return s
}

// run sends n messages on each socket, as many ahead as the receiver takes: half of
// them by Post, the others by Send, and takes them by Recv.
func (s *saturation) run(t *testing.T, n int) {
	var wg sync.WaitGroup
	for i, sock := range s.socks {
		from, to := s.p.nodes[1], s.p.nodes[0]
		wg.Go(func() {
			room := make(chan struct{}, 2000) // more than what waits for a worker without overflow
			for range n {
				b, err := from.Alloc(s.size)
				if err == nil && i%2 == 0 {
					if err = sock[1].Send(t.Context(), b); err == nil {
						from.Free(b)
					}
				} else if err == nil {
					room <- struct{}{}
					err = sock[1].Post(b, func(err error) {
						if err != nil {
							t.Error(err)
						} else {
							s.posted()
							from.Free(b)
						}
						<-room
					})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
			for range cap(room) {
				room <- struct{}{}
			}
		})
		wg.Go(func() {
			for range n {
				b, err := sock[0].Recv(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				to.Free(b)
			}
		})
	}
	wg.Wait()
}

// TestNoLockOnTheDataPath: the profiles of saturated runs show no lock of this package,
// its core or the provider, and nothing that a worker waits for. In the control, what
// the application does on the worker takes a lock that somebody else holds.
func TestNoLockOnTheDataPath(t *testing.T) {
	if os.Getenv("BEMALLOC_DEBUG") != "" {
		t.Skip("BEMALLOC_DEBUG locks")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.NumCPU(), 4)))
	for _, model := range []string{"", "mlx5"} {
		for _, size := range []int{64, 8 << 10, 256 << 10} {
			t.Run(fmt.Sprintf("model=%s/size=%d", model, size), func(t *testing.T) {
				t.Setenv(testmodel.Env, model)
				s := newSaturation(t, be.Config{Workers: 2}, size)
				n := min(32<<20/size, 4000)
				s.run(t, n) // rings grow, pools fill
				stacks := waits(func() { s.run(t, n) })
				for _, stack := range onDataPath(stacks) {
					t.Errorf("on the data path: %s", stack)
				}
				if len(stacks) == 0 {
					t.Error("nobody ever waited for anything: this was no saturation")
				}
				if size != 64 {
					return
				}
				var mu sync.Mutex
				stop := make(chan struct{})
				var wg sync.WaitGroup
				wg.Go(func() {
					for !isDone(stop) {
						mu.Lock()
						runtime.Gosched()
						mu.Unlock()
					}
				})
				s.posted = func() {
					mu.Lock()
					runtime.Gosched()
					mu.Unlock()
				}
				seen := 0
				for try := 0; try < 50 && seen == 0; try++ {
					seen = len(onDataPath(waits(func() { s.run(t, 200) })))
				}
				close(stop)
				wg.Wait()
				if seen == 0 {
					t.Error("the lock of the control was not seen")
				}
			})
		}
	}
}

func isDone(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
