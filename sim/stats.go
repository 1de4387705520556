package sim

import (
	"reflect"
)

// Counters gives the NIC's counters by name, as a report shows them. Context has
// it too, so that a program may ask any verbs.Context for the interface
//
//	interface{ Counters() map[string]uint64 }
func (d *Device) Counters() map[string]uint64 {
	v := reflect.ValueOf(d.Stats())
	out := make(map[string]uint64, v.NumField())
	for i := range v.NumField() {
		out[v.Type().Field(i).Name] = v.Field(i).Uint()
	}
	return out
}
