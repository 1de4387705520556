package msgtest

import (
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/pages"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// OverCopy is the name of the rows of [Copy].
const OverCopy = "copy"

// Copy measures what no transport inside one machine can beat by much: one goroutine
// copies messages of size bytes from as many buffers as a test has posted at a time to
// as many others, by turns, with the copy of Go. More than manyBytes of each, which no
// cache holds, are not used. It ends after d, or at stop.
func Copy(size, buffers int, d time.Duration, stop <-chan struct{}) (s *report.Sample, err error) {
	buffers = min(buffers, max(2, manyBytes/size))
	s = &report.Sample{Name: OverCopy, SizeBytes: size}
	var memory [2][]byte // one after the other, as a pool has them
	for i := range memory {
		if memory[i], err = pages.Alloc(size * buffers); err != nil {
			return nil, err
		}
		defer pages.Free(memory[i])
		fill(memory[i], uint64(i)) // the pages are there from now on
	}
	batch := max(1, (64<<10)/size) // between two looks at the clock
	meter := cost.Start()
	for began := time.Now(); s.Wall < d && !s.Stopped; s.Wall = time.Since(began) {
		for range batch {
			at := int(s.Ops%int64(buffers)) * size
			copy(memory[1][at:at+size], memory[0][at:])
			s.Ops++
		}
		select {
		case <-stop:
			s.Stopped = true
		default:
		}
	}
	spent := meter.Since()
	s.Spent, s.Bytes = &spent, s.Ops*int64(size)
	s.Moved = s.Bytes
	return s, nil
}
