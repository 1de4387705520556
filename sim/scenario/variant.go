package scenario

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// standard are the variants that need no definition. Windows are filled in by the
// engine's part of the scenario.
var standard = []Variant{
	{Name: "tcp-cubic-200", Transport: "tcp-cubic-200"},
	{Name: "tcp-cubic-5", Transport: "tcp-cubic-5"},
	{Name: "tcp-dctcp-5", Transport: "tcp-dctcp-5"},
	{Name: "dcqcn"},
	{Name: "static"},
	{Name: "adaptive"},
	{Name: "get-dcqcn", Get: true},
	{Name: "get-static", Get: true},
	{Name: "get-adaptive", Get: true},
}

// Standard are the names of the variants that need no definition: TCP as Linux has it
// (a least timeout of 200 ms), tuned (5 ms), and with DCTCP; RDMA with the congestion
// control of NICs alone, and with a static or an adaptive send window; each with WRITEs
// of the sender, and with READs of the receiver (get).
func Standard() (names []string) {
	for _, v := range standard {
		names = append(names, v.Name)
	}
	return names
}

// UnmarshalJSON reads a list of objects and names of standard variants.
func (v *Variants) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return errors.New("variants is not a list, want one of names and objects")
	}
	*v = make(Variants, len(list))
	for i, item := range list {
		if bytes.HasPrefix(item, []byte{'"'}) {
			if err := json.Unmarshal(item, &(*v)[i].Name); err != nil {
				return err
			}
			(*v)[i].byName = true
		} else if err := json.Unmarshal(item, &(*v)[i]); err != nil {
			return explain(err, fmt.Sprintf("variants[%d]", i))
		}
	}
	return nil
}

// Pick leaves only the named variants, in that order: those of the scenario, or
// standard ones.
func (s *Scenario) Pick(names []string) error {
	var picked Variants
	for _, name := range names {
		i := slices.IndexFunc(s.Variants, func(v Variant) bool { return v.Name == name })
		if i >= 0 {
			picked = append(picked, s.Variants[i])
			continue
		}
		v, err := s.standard(name)
		if err != nil {
			return err
		}
		picked = append(picked, v)
	}
	s.Variants = picked
	return s.check()
}

// standard makes the standard variant of a name for the scenario's engines.
func (s *Scenario) standard(name string) (Variant, error) {
	i := slices.IndexFunc(standard, func(v Variant) bool { return v.Name == name })
	if i < 0 {
		names := Standard()
		for _, v := range slices.Backward(s.Variants) {
			if v.Name != name && !slices.Contains(names, v.Name) {
				names = slices.Insert(names, 0, v.Name)
			}
		}
		return Variant{}, errors.Errorf("variant %q: want one of the scenario's or a standard one: %s", name, strings.Join(names, ", "))
	}
	v := standard[i]
	v.Transport = cmp.Or(v.Transport, rdmaTransport)
	switch strings.TrimPrefix(name, "get-") {
	case "static":
		v.WindowBytes = s.Engine.WindowBytes
	case "adaptive":
		v.WindowBytes, v.WindowTarget = s.Engine.MaxWindowBytes, s.Engine.WindowTarget
	}
	return v, nil
}
