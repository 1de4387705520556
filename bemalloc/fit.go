package bemalloc

// fitTree is a tournament over blocks: each leaf is the longest free run of a
// block in units, each inner node the larger of its children. It finds the
// lowest block with room in O(log blocks). Lowest first keeps the high blocks
// empty, so that they can be given back.
type fitTree struct {
	node   []uint8 // node[1] is the root; leaves start at leaves
	leaves uint32  // a power of two
}

// grow makes room for block b.
func (t *fitTree) grow(b uint32) {
	if b < t.leaves {
		return
	}
	n := max(t.leaves, 16)
	for n <= b {
		n *= 2
	}
	node := make([]uint8, 2*n)
	copy(node[n:], t.node[t.leaves:])
	t.node, t.leaves = node, n
	for i := n - 1; i > 0; i-- {
		node[i] = max(node[2*i], node[2*i+1])
	}
}

// set records the longest free run of block b.
func (t *fitTree) set(b uint32, longest uint32) {
	i, v := t.leaves+b, uint8(longest)
	if t.node[i] == v {
		return
	}
	t.node[i] = v
	for i > 1 {
		v = max(v, t.node[i^1])
		i /= 2
		if t.node[i] == v {
			return
		}
		t.node[i] = v
	}
}

// longest gives the longest free run of any block.
func (t *fitTree) longest() uint32 {
	if t.leaves == 0 {
		return 0
	}
	return uint32(t.node[1])
}

// first gives the lowest block with a run of at least k units; there is one.
func (t *fitTree) first(k uint32) uint32 {
	i := uint32(1)
	for i < t.leaves {
		i *= 2
		if uint32(t.node[i]) < k {
			i++
		}
	}
	return i - t.leaves
}

// next gives the lowest block from b on with a run of at least k units.
func (t *fitTree) next(b, k uint32) (uint32, bool) {
	for ; b < t.leaves; b++ {
		if uint32(t.node[t.leaves+b]) >= k {
			return b, true
		}
	}
	return 0, false
}
