package core

import (
	"reflect"
	"testing"
	"time"
)

// TestAddAddsAll: every field of two Stats is in their sum. A field that Add forgets would
// be 0 for every node.
func TestAddAddsAll(t *testing.T) {
	var sum, one Stats
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Uint64:
			f.SetUint(uint64(i) + 1)
		case reflect.Int64:
			f.SetInt(int64(i) + 1)
		default:
			t.Fatalf("%s is a %v", v.Type().Field(i).Name, f.Kind())
		}
	}
	sum.Add(&one)
	sum.Add(&one)
	got := reflect.ValueOf(sum)
	for i := range v.NumField() {
		f := got.Field(i)
		n := uint64(0)
		if f.CanInt() {
			n = uint64(f.Int())
		} else {
			n = f.Uint()
		}
		if n != 2*(uint64(i)+1) {
			t.Errorf("%s: twice %d is %d", v.Type().Field(i).Name, i+1, n)
		}
	}
}

// TestCountsOfAScript: what two engines count is what a script has them do.
func TestCountsOfAScript(t *testing.T) {
	cfg := testConfig() // eager to 1024, fragments of 2048, a window of four
	cfg.Backlog, cfg.PeerBacklog = 64, 64
	w := newWorld(t, 1, cfg)
	a, b := w.sides[0], w.sides[1]
	own, _ := w.open(0)
	before := a.e.Stats()
	var f flow
	for _, n := range []int{0, 10, 20, 30, 1024} { // four that go together, and one that does not fit
		w.send(a, own, &f, n, 0)
	}
	a.e.Flush(w.now)
	st := a.e.Stats()
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"Eager", st.Eager, 5}, {"EagerBytes", st.EagerBytes, 1084}, {"Packed", st.Packed, 3}, {"Sends", st.Sends - before.Sends, 2},
		{"Requests", st.Requests - before.Requests, 2}, {"Doorbells", st.Doorbells - before.Doorbells, 1}, {"Signaled", st.Signaled - before.Signaled, 1},
		{"Sending", st.Sending, 5}, {"InFlight", st.InFlight, 2}, {"Sent", st.Sent, 0}, {"Visits", st.Visits - before.Visits, 5},
	} {
		if c.got != c.want {
			t.Errorf("posted: %s is %d, want %d", c.name, c.got, c.want)
		}
	}
	w.settle()
	w.send(a, own, &f, 20_000, 0) // ten fragments: the window is full twice
	w.settle()
	if err := a.e.SetGet(own, true); err != nil {
		t.Fatal(err)
	}
	w.send(a, own, &f, 5000, 0) // three READs
	w.settle()
	a.e.SetGet(own, false)
	w.send(a, own, &f, 9000, 9)
	for own.requested.head == nil {
		a.e.Flush(w.now)
	}
	a.e.Cancel(own, 9)
	w.settle()
	st, to := a.e.Stats(), b.e.Stats()
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"Sent", st.Sent, 7}, {"Rendezvous", st.Rendezvous, 1}, {"WriteBytes", st.WriteBytes, 20_000}, {"Fragments", st.Fragments, 10},
		{"Offered", st.Offered, 1}, {"Sending", st.Sending, 0}, {"InFlight", st.InFlight, 0}, {"Controls", st.Controls, 0},
		{"Requests", st.Requests, st.Sends + st.Fragments}, {"requests of the receiver", to.Requests, to.Sends + to.Reads},
		{"Received", to.Received, 7}, {"Copies", to.Copies, 4}, {"Reads", to.Reads, 3}, {"ReadBytes", to.ReadBytes, 5000}, {"Canceled", to.Canceled, 1},
		{"Posted", to.Posted, uint64(b.e.receiving())}, {"RNR", st.RNR + to.RNR, 0}, {"Failures", st.Failures + to.Failures, 0},
	} {
		if c.got != c.want {
			t.Errorf("at the end: %s is %d, want %d", c.name, c.got, c.want)
		}
	}
	if st.WindowStalls == 0 || st.WindowStall <= 0 || st.WindowStall > w.now || st.CreditStalls != 0 || st.CreditStall != 0 {
		t.Errorf("stalls: %+v", st)
	}
	if st.Signaled > st.Requests || st.Doorbells > st.Requests || st.Doorbells == 0 {
		t.Errorf("%d doorbells, %d requests, %d signaled", st.Doorbells, st.Requests, st.Signaled)
	}
	w.end()
}

// TestStallsAreTimed: the time without credits, slots or room in the window is that from
// when work had to wait until it need not.
func TestStallsAreTimed(t *testing.T) {
	for _, lack := range []string{"credits", "slots"} {
		cfg := testConfig()
		cfg.Pack = false
		cfg.PackLimit = 0
		cfg.Backlog, cfg.PeerBacklog = 1<<10, 1<<10
		if lack == "slots" {
			cfg.SendDepth, cfg.RecvDepth, cfg.PeerDepth = 4, 32, 32
		}
		w := newWorld(t, 1, cfg)
		a := w.sides[0]
		own, _ := w.open(0)
		var f flow
		for range 40 {
			w.send(a, own, &f, 10, 0)
		}
		w.now = time.Second
		a.e.Flush(w.now)
		a.e.Flush(w.now) // the first one used up what there is
		w.now = 3 * time.Second
		w.settle()
		st := a.e.Stats()
		counts := map[string][2]any{"credits": {st.CreditStalls, st.CreditStall}, "slots": {st.SlotStalls, st.SlotStall}}
		n, d := counts[lack][0].(uint64), counts[lack][1].(time.Duration)
		if n == 0 || d < 2*time.Second || d > 2*time.Second+time.Millisecond {
			t.Errorf("%s: %d stalls of %v, want 2s: %+v", lack, n, d, st)
		}
		w.end()
	}
}
