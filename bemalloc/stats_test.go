package bemalloc

import (
	"reflect"
	"testing"
)

// TestStatsAdd: every number is added, or is the larger one.
func TestStatsAdd(t *testing.T) {
	var fill func(v reflect.Value, by int64)
	fill = func(v reflect.Value, by int64) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), by)
			}
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i), by)
			}
		default:
			v.SetInt(by)
		}
	}
	var a, b, want Stats
	fill(reflect.ValueOf(&a).Elem(), 3)
	fill(reflect.ValueOf(&b).Elem(), 4)
	fill(reflect.ValueOf(&want).Elem(), 7)
	want.Register.Max, want.Deregister.Max = 4, 4
	for i := range want.Classes {
		want.Classes[i].Size = 4
	}
	if a.Add(&b); a != want {
		t.Errorf("got %+v", a)
	}
}
