// Package calls measures unary echo calls of an RPC library over TCP loopback, between
// two ends in this process, for "bebench rpc --also NAME=PROGRAM", as bebench measures
// archon's: callers, each of which waits for its call before it makes the next.
package calls

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/bits"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Echo makes a call and gives what came back, which must not change until the caller's
// next call. Each caller has one of its own.
type Echo func(request []byte) (response []byte, err error)

// Library starts a server and a client of it, for so many callers. caller gives the Echo of
// one.
type Library func(callers int) (caller func() Echo, stop func(), err error)

// Main is the program of a library: echo --size BYTES --outstanding CALLERS --seconds S. It
// prints one row of bebench's JSON.
func Main(args []string, out io.Writer, start Library) error {
	if len(args) == 0 || args[0] != "echo" {
		return errors.New("say what: echo")
	}
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	size := fs.Int("size", 64, "bytes of a message, at least 8")
	callers := fs.Int("outstanding", 1, "calls at once")
	seconds := fs.Float64("seconds", 1, "how long to measure")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if *size < 8 || *callers < 1 || !(*seconds > 0) {
		return errors.New("--size must be at least 8, --outstanding and --seconds more than 0")
	}
	caller, stop, err := start(*callers)
	if err != nil {
		return err
	}
	defer stop()
	all := make([]*loop, *callers)
	for i := range all {
		all[i] = &loop{echo: caller(), request: make([]byte, *size)}
	}
	warm := min(200, max(1, 64<<20/(*size**callers)))
	if err := Each(all, func(l *loop) error { return l.run(warm, nil) }); err != nil {
		return err
	}
	for _, l := range all {
		l.times = histogram{}
	}
	var over atomic.Bool
	time.AfterFunc(time.Duration(*seconds*float64(time.Second)), func() { over.Store(true) })
	cpu, allocs, began := CPUTime(), heapAllocs(), time.Now()
	err = Each(all, func(l *loop) error { return l.run(1<<62, &over) })
	wall := time.Since(began)
	cpu, allocs = CPUTime()-cpu, heapAllocs()-allocs
	if err != nil {
		return err
	}
	var times histogram
	for _, l := range all {
		times.merge(&l.times)
	}
	n := float64(times.n)
	return json.NewEncoder(out).Encode(map[string]any{
		"ops": times.n, "seconds": wall.Seconds(), "ops_per_s": n / wall.Seconds(), "bytes_per_s": n * float64(*size) / wall.Seconds(), "cpu_ns_per_op": float64(cpu) / n,
		"go_allocs_per_op": float64(allocs) / n, "verified": true,
		"latency_us": map[string]float64{
			"min": times.at(0), "p50": times.at(0.5), "mean": float64(times.sum) / n / 1e3, "p99": times.at(0.99), "p999": times.at(0.999), "max": times.at(1),
		},
	})
}

// loop is one caller.
type loop struct {
	echo    Echo
	request []byte
	number  uint64
	times   histogram
}

// run makes so many calls, or until it is over.
func (l *loop) run(n int, over *atomic.Bool) error {
	for i := 0; i < n && (over == nil || !over.Load()); i++ {
		at := time.Now()
		l.number++
		binary.LittleEndian.PutUint64(l.request, l.number)
		response, err := l.echo(l.request)
		if err != nil {
			return err
		}
		l.times.add(time.Since(at))
		if len(response) != len(l.request) || binary.LittleEndian.Uint64(response) != l.number {
			return fmt.Errorf("the answer to message %d of %d bytes is another of %d", l.number, len(l.request), len(response))
		}
	}
	return nil
}

// Each has all do something at the same time, and joins their errors.
func Each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() { errs[i] = do(one) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// histogram counts times to 1/64 of their value.
type histogram struct {
	counts [64 * 64]int64
	n      int64
	sum    time.Duration
}

func (h *histogram) add(d time.Duration) {
	v := uint64(max(d, 1))
	shift := max(0, bits.Len64(v)-7)
	h.counts[shift*64+int(v>>shift)]++ // v>>shift is below 128
	h.n++
	h.sum += d
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
	h.sum += o.sum
}

// at gives the time that a share of all do not exceed, in microseconds.
func (h *histogram) at(share float64) float64 {
	left := max(1, int64(share*float64(h.n)))
	for i, n := range h.counts {
		if left -= n; left <= 0 {
			if i < 128 {
				return float64(i) / 1e3
			}
			shift := i/64 - 1
			return float64(uint64(i-64*shift)<<shift) / 1e3
		}
	}
	return 0
}

// CPUTime is the user and system time of all threads of the process.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heapAllocs() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
