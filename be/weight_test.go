package be_test

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/be"
)

// TestSetWeight: a weight is checked, and messages flow with it.
func TestSetWeight(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "weights")
	var typed *be.ConfigError
	for _, w := range []int{0, -1, be.MaxWeight + 1} {
		if err := client.SetWeight(w); !errors.As(err, &typed) {
			t.Errorf("weight %d: %v", w, err)
		}
	}
	for _, w := range []int{1, be.MaxWeight} {
		if err := client.SetWeight(w); err != nil {
			t.Fatal(err)
		}
		exchange(t, client, server, 200_000, byte(w))
	}
	if st := p.nodes[1].Stats(); st.Signaled == 0 || st.Signaled > st.Requests || st.Posted == 0 || st.Visits == 0 {
		t.Errorf("%d of %d requests signaled, %d receives posted, %d visits", st.Signaled, st.Requests, st.Posted, st.Visits)
	}
	client.Close()
	<-client.Done()
	if err := client.SetWeight(1); !errors.Is(err, be.ErrClosed) {
		t.Errorf("on a closed socket: %v", err)
	}
}
