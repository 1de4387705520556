package des

// Table gives what events are about a number for them to carry. The zero value is
// empty.
type Table[T any] struct {
	items []T
	spare []int32 // numbers that are free
}

// Put keeps v and gives its number.
func (t *Table[T]) Put(v T) int32 {
	if n := len(t.spare); n > 0 {
		i := t.spare[n-1]
		t.spare = t.spare[:n-1]
		t.items[i] = v
		return i
	}
	t.items = append(t.items, v)
	return int32(len(t.items) - 1)
}

// Take gives what has the number, which is free from now on.
func (t *Table[T]) Take(i int32) T {
	var none T
	v := t.items[i]
	t.items[i] = none
	t.spare = append(t.spare, i)
	return v
}

// Look gives what has the number, which keeps it.
func (t *Table[T]) Look(i int32) T { return t.items[i] }
