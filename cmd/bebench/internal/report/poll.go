package report

import "time"

// pollEvery is how often progress is looked at.
const pollEvery = 100 * time.Millisecond

// Poll tells show how far a measurement is, again and again, until the function
// that it returns is called. show may be nil.
func Poll(show func(done, total int64), progress func() (done, total int64)) (stop func()) {
	if show == nil {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(pollEvery)
		defer t.Stop()
		for {
			select {
			case <-end:
				return
			case <-t.C:
				show(progress())
			}
		}
	}()
	return func() { close(end); <-ended }
}
