package scenario

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
)

// units of a span; of two that fit, the first is meant.
var units = []struct {
	name string
	of   des.Time
}{{"ns", des.Nanosecond}, {"us", des.Microsecond}, {"ms", des.Millisecond}, {"s", des.Second}}

// maxSpan is more virtual time than any run has patience for, in seconds.
const maxSpan = 3600

// String writes the span as a file has it, in the largest unit that divides it.
func (s Span) String() string {
	if s == 0 {
		return "0s"
	}
	i := len(units) - 1
	for i > 0 && des.Time(s)%units[i].of != 0 {
		i--
	}
	return strconv.FormatInt(int64(des.Time(s)/units[i].of), 10) + units[i].name
}

// MarshalJSON writes text as "10ms".
func (s Span) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads text as "10ms".
func (s *Span) UnmarshalJSON(b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	return s.set(v)
}

// set reads a value of a file.
func (s *Span) set(v any) error {
	text, ok := v.(string)
	if !ok {
		return errors.Errorf("is %v, want a time in text, as \"10ms\" or \"300ns\"", v)
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		v, err := strconv.ParseFloat(number, 64)
		if ok && err == nil && v >= 0 && v*float64(u.of) <= maxSpan*float64(des.Second) {
			*s = Span(math.Round(v*float64(u.of/des.Nanosecond))) * Span(des.Nanosecond)
			return nil
		}
	}
	return errors.Errorf("is %q, want a time of 0s to %ds, as \"10ms\", \"2.5us\" or \"300ns\"", text, maxSpan)
}
