package ps

import (
	"math"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

func (s *Shard) handlePush(call *archon.ServerCall) error {
	if err := bornAhead(call.Payload(), time.Now()); err != nil {
		return err
	}
	return s.push(call.Payload())
}

// push applies a request, unless it was applied before. It may change the request's
// gradients to how the machine reads them.
func (s *Shard) push(payload []byte) error {
	req, err := parseRequest(payload, &s.cfg, true)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh, err := s.accept(&req)
	if fresh {
		s.apply(&req)
	}
	return err
}

// accept makes ready for a push, unless it was applied before: such a one is answered as
// the first time, whatever map it is by. The caller holds mu.
func (s *Shard) accept(req *request) (fresh bool, err error) {
	if s.closed {
		return false, errClosed
	}
	known := s.clients.look(req.id)
	if known == applied {
		return false, nil
	}
	if err := s.own.takes(req); err != nil {
		return false, err
	}
	if i := firstNotFinite(req.gradients); i >= 0 {
		return false, archon.Errorf(archon.InvalidArgument, "gradient %d of key %#x is %v", i%s.cfg.Dim, req.key(i/s.cfg.Dim), floatAt(req.gradients, i))
	}
	if known == unknown {
		return false, ErrForgotten
	}
	// Rows first: a refusal in between leaves new rows at their initial values, which
	// nobody can tell from rows that are not there, and others as they were.
	for i := range req.count {
		key := req.key(i)
		hash := Hash(key)
		if err := s.own.serves(key, hash, req.version); err != nil {
			return false, err
		}
		n, err := s.findOrCreate(key, hash)
		if err == nil {
			err = s.table.makeWritable(key, hash, n)
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// apply applies a push that was accepted, under the same lock.
func (s *Shard) apply(req *request) {
	gradients := viewFloats(req.gradients)
	for i := range req.count {
		key := req.key(i)
		hash := Hash(key)
		if s.pulls != nil {
			s.pulls.touched(key, hash)
		}
		n := s.table.find(key, hash)
		row := s.table.row(n)
		if s.cfg.Optimizer == Adagrad {
			adagrad(row, s.table.squares(n), gradients[:len(row)], s.cfg.LearningRate, s.cfg.Epsilon)
		} else {
			step(row, gradients[:len(row)], s.cfg.LearningRate)
		}
		*s.table.version(n)++
		gradients = gradients[len(row):]
	}
	s.clients.add(req.id)
}

// adagrad applies one gradient to a row and its sums of squares, all of the same length.
func adagrad(row, squares, gradient []float32, rate, epsilon float32) {
	squares, gradient = squares[:len(row)], gradient[:len(row)]
	for i, g := range gradient {
		square := float32(g * g)
		sum := squares[i] + square
		squares[i] = sum
		// The root of a float32, rounded to float64 and then to float32, is the root
		// rounded to float32: 53 bits are more than twice 24 and 2 (Figueroa 1995).
		below := float32(math.Sqrt(float64(sum))) + epsilon
		above := float32(rate * g)
		row[i] -= float32(above / below)
	}
}

// step applies one gradient to a row of the same length.
func step(row, gradient []float32, rate float32) {
	// The conversions keep the compiler from fusing product and difference. Four at a
	// time take half as long as one.
	for len(row) >= 4 && len(gradient) >= 4 {
		row[0] -= float32(rate * gradient[0])
		row[1] -= float32(rate * gradient[1])
		row[2] -= float32(rate * gradient[2])
		row[3] -= float32(rate * gradient[3])
		row, gradient = row[4:], gradient[4:]
	}
	for i, g := range gradient {
		row[i] -= float32(rate * g)
	}
}
