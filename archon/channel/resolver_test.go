package channel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
)

func TestParseEndpoints(t *testing.T) {
	list, err := channel.ParseEndpoints([]byte("# a comment\nname=a rdma=1:2 tcp=1:3 zone=x # more\n\n  tcp=2:3   draining\n"))
	want := []channel.Endpoint{{Name: "a", RDMA: "1:2", TCP: "1:3", Zone: "x"}, {TCP: "2:3", Draining: true}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v", list, err)
	}
	for text, part := range map[string]string{
		"name=a":                           "no address",
		"tcp=1:2\ntcp=1:2":                 "two replicas",
		"tcp=1:2\nname=1:2 tcp=3:4":        "two replicas",
		"tcp":                              "no value",
		"tcp=":                             "no value",
		"tcp=1:2 tcp=1:3":                  "line 1: \"tcp=1:3\": tcp is given twice",
		"\nport=3":                         "line 2: \"port=3\": known are",
		strings.Repeat("tcp=1:2\n", 10001): "more than 10000",
	} {
		if _, err := channel.ParseEndpoints([]byte(text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%.20q: %v, want %q", text, err, part)
		}
	}
}

// FuzzParseEndpoints: what was read is read again from its own text.
func FuzzParseEndpoints(f *testing.F) {
	f.Add([]byte("name=a rdma=1:2 tcp=1:3 zone=x draining\ntcp=[::1]:3"))
	f.Add([]byte("# nothing\n\ntcp=x=y"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := channel.ParseEndpoints(text)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, e := range list {
			fmt.Fprintln(&b, e)
		}
		again, err := channel.ParseEndpoints([]byte(b.String()))
		if err != nil || !slices.Equal(list, again) {
			t.Fatalf("%q: %v, then %v, %v", text, list, again, err)
		}
	})
}

// watched gives what a resolver says.
func watched(t *testing.T, r channel.Resolver) (lists chan []channel.Endpoint, errs chan error) {
	lists, errs = make(chan []channel.Endpoint, 100), make(chan error, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Watch(ctx, func(list []channel.Endpoint, err error) {
			if err != nil {
				errs <- err
			} else {
				lists <- list
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return lists, errs
}

// TestFileResolver: changes in place, by rename, to nonsense, away and back.
func TestFileResolver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "replicas")
	write := func(to, text string) {
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lists, errs := watched(t, channel.File{Path: path, Interval: time.Millisecond})
	if err := <-errs; !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("no file: %v", err)
	}
	write(path, "tcp=1:1\n")
	if list := <-lists; len(list) != 1 || list[0].TCP != "1:1" {
		t.Errorf("written: %v", list)
	}
	replace := func(text string) {
		write(path+".new", text)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	replace("tcp=1:1\ntcp=2:2\n")
	if list := <-lists; len(list) != 2 {
		t.Errorf("renamed: %v", list)
	}
	// Of the same length, and as old as the one before.
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(path+".new", "tcp=1:1\ntcp=3:3\n")
	if err := os.Chtimes(path+".new", st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if list := <-lists; len(list) != 2 || list[1].TCP != "3:3" {
		t.Errorf("of the same age: %v", list)
	}
	replace("nonsense\n")
	if err := <-errs; !strings.Contains(err.Error(), "line 1") {
		t.Errorf("nonsense: %v", err)
	}
	replace("# none\n")
	if err := <-errs; !strings.Contains(err.Error(), "there are none") {
		t.Errorf("none: %v", err)
	}
	replace("tcp=4:4\n")
	if list := <-lists; len(list) != 1 || list[0].TCP != "4:4" {
		t.Errorf("good again: %v", list)
	}
	if len(lists)+len(errs) > 0 {
		t.Error("more was said than there was")
	}
}

func TestDNSResolver(t *testing.T) {
	var answer atomic.Pointer[[]string]
	answer.Store(&[]string{"10.0.0.2", "10.0.0.1", "10.0.0.2"})
	lists, errs := watched(t, channel.DNS{Host: "svc", RDMAPort: 7, TCPPort: 8, Interval: time.Millisecond,
		LookupHost: func(_ context.Context, host string) ([]string, error) {
			if a := answer.Load(); a != nil && host == "svc" {
				return *a, nil
			}
			return nil, errors.New("no such host")
		}})
	want := []channel.Endpoint{{Name: "10.0.0.1", RDMA: "10.0.0.1:7", TCP: "10.0.0.1:8"}, {Name: "10.0.0.2", RDMA: "10.0.0.2:7", TCP: "10.0.0.2:8"}}
	if list := <-lists; !slices.Equal(list, want) {
		t.Errorf("first: %v", list)
	}
	answer.Store(nil)
	if err := <-errs; !strings.Contains(err.Error(), "svc") {
		t.Errorf("error %v", err)
	}
	answer.Store(&[]string{"fe80::1"})
	if list := <-lists; len(list) != 1 || list[0].TCP != "[fe80::1]:8" {
		t.Errorf("then: %v", list)
	}
}

// list is a resolver of a test.
type list struct{ updates chan []channel.Endpoint }

func (l list) Watch(ctx context.Context, update func([]channel.Endpoint, error)) {
	for {
		select {
		case e := <-l.updates:
			update(e, nil)
		case <-ctx.Done():
			return
		}
	}
}

// TestUpdatesAtRunTime: replicas are added, drained, moved and removed under calls.
func TestUpdatesAtRunTime(t *testing.T) {
	a, b := startServer(t, "a", nil), startServer(t, "b", nil)
	ea, eb := channel.Endpoint{Name: "a", TCP: a.tcp}, channel.Endpoint{Name: "b", TCP: b.tcp}
	r := list{make(chan []channel.Endpoint)}
	ch := newChannel(t, channel.Config{Resolver: r})
	l := startLoad(t, ch, 4) // calls wait for the first list
	r.updates <- []channel.Endpoint{ea}
	l.more(t, 50)
	r.updates <- []channel.Endpoint{ea, eb}
	eventually(t, "b is asked", func() bool { return b.calls.Load() > 20 })
	ea.Draining = true
	r.updates <- []channel.Endpoint{ea, eb}
	l.more(t, 20)
	n := a.calls.Load()
	l.more(t, 50)
	if more := a.calls.Load() - n; more > 8 { // those that were on their way
		t.Errorf("drained, a got %d more calls", more)
	}
	ea.Draining = false
	r.updates <- []channel.Endpoint{ea, eb}
	eventually(t, "a is asked again", func() bool { return a.calls.Load() > n+20 })
	r.updates <- []channel.Endpoint{ea}
	eventually(t, "b is forgotten", func() bool { return len(ch.Stats().Replicas) == 1 })
	l.more(t, 50)
	c := startServer(t, "c", nil)
	r.updates <- []channel.Endpoint{{Name: "a", TCP: c.tcp}} // the name has moved
	eventually(t, "the new address is asked", func() bool { return c.calls.Load() > 20 })
	r.updates <- []channel.Endpoint{{Name: "a", TCP: c.tcp}, {Name: "a", TCP: b.tcp}} // refused
	l.more(t, 20)
	l.end()
	if st := ch.Stats(); len(st.Replicas) != 1 || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
}

// TestRemovedReplicaEndsItsCalls: what is under way there is answered.
func TestRemovedReplicaEndsItsCalls(t *testing.T) {
	slow, in, out := archon.NewMethod("test.Slow"), make(chan struct{}), make(chan struct{})
	v := startServer(t, "a", handlers{slow: func(*archon.ServerCall) error {
		close(in)
		<-out
		return nil
	}})
	r := list{make(chan []channel.Endpoint)}
	ch := newChannel(t, channel.Config{Resolver: r})
	r.updates <- []channel.Endpoint{{TCP: v.tcp}}
	ended := make(chan error)
	go func() {
		_, err := ask(limit(t), ch, slow, "")
		ended <- err
	}()
	<-in
	r.updates <- nil
	eventually(t, "it is forgotten", func() bool { return len(ch.Stats().Replicas) == 0 })
	close(out)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServerDrains: a server that shuts down gently costs no call anything.
func TestServerDrains(t *testing.T) {
	a, b := startServer(t, "a", nil), startServer(t, "b", nil)
	ch := newChannel(t, channel.Config{Resolver: channel.Static(channel.Endpoint{Name: "a", TCP: a.tcp}, channel.Endpoint{Name: "b", TCP: b.tcp})})
	l := startLoad(t, ch, 8)
	eventually(t, "both are asked", func() bool { return a.calls.Load() > 20 && b.calls.Load() > 20 })
	for range 3 {
		if err := a.s.Shutdown(limit(t)); err != nil {
			t.Error(err)
		}
		l.more(t, 50)
		a.stop()
		a.start()
		n := a.calls.Load()
		eventually(t, "a is asked again", func() bool { return a.calls.Load() > n+20 })
	}
	l.end()
	if st := ch.Stats(); st.Failed != 0 || stats(ch, "a").Path != core.TCP {
		t.Errorf("%+v", st)
	}
}
