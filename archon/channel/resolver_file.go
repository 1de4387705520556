package channel

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"github.com/pkg/errors"
)

// File is a resolver of the replicas in a file, as ParseEndpoints reads it. It looks at
// the file again every Interval and sees changes in place as well as a new file of that
// name, which is the better way: a rename never shows half of a list.
type File struct {
	Path     string
	Interval time.Duration // 0: 1 s
}

// maxFile bounds the file, in bytes.
const maxFile = 4 << 20

// Watch implements Resolver.
func (f File) Watch(ctx context.Context, update func([]Endpoint, error)) {
	var last []byte
	var lastErr string
	every(ctx, f.Interval, time.Second, func() {
		text, err := f.read()
		if err == nil && last != nil && bytes.Equal(text, last) {
			return
		}
		var list []Endpoint
		if err == nil {
			waitFor(ctx, settleFile)
			if again, err := f.read(); err != nil || !bytes.Equal(text, again) {
				return // it is being written: the next look sees more
			}
			list, err = ParseEndpoints(text)
		}
		if err == nil && len(list) == 0 {
			err = errors.New("there are none: the file is taken for half written")
		}
		if err == nil {
			last, lastErr = text, ""
			update(list, nil)
			return
		}
		// A bad or missing file leaves the replicas as they are.
		if err = errors.WithMessagef(err, "channel: replicas in %s", f.Path); err.Error() != lastErr {
			lastErr = err.Error()
			update(nil, err)
		}
	})
}

// settleFile is how long a changed file must stay as it is to be believed: who writes
// in place truncates it first.
const settleFile = 10 * time.Millisecond

// waitFor waits for d, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// read gives the file's bytes. The whole file is compared, not its time: that moves in
// steps, and a rename may bring an older one.
func (f File) read() ([]byte, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errors.Errorf("more than %d bytes", maxFile)
	}
	return text, err
}

// every calls look at once, and then every interval, until ctx ends.
func every(ctx context.Context, interval, unset time.Duration, look func()) {
	if interval <= 0 {
		interval = unset
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		look()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
