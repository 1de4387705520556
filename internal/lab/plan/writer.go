package plan

import (
	"encoding/json"
	"io"
	"sync"
)

// Writer numbers records and writes them as lines. Any goroutine may use it.
type Writer struct {
	mu    sync.Mutex
	w     io.Writer
	nonce string
	seq   int
	err   error
}

// NewWriter gives a writer for the run with this nonce.
func NewWriter(w io.Writer, nonce string) *Writer { return &Writer{w: w, nonce: nonce} }

// Send writes a record; it fills in Nonce and Seq. After an error it writes nothing
// more: the reader then finds the records incomplete.
func (w *Writer) Send(r Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.seq++
	r.Nonce, r.Seq = w.nonce, w.seq
	line, err := json.Marshal(r)
	if err == nil {
		_, err = w.w.Write(append(line, '\n'))
	}
	w.err = err
	return err
}
