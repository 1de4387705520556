package mmio

// Index is a position in a ring. Every Index that the methods of [Mask] return
// lies in the ring; one read from shared memory goes through [Mask.Wrap] first.
type Index uint32

// Mask describes a ring of a power-of-two number of slots: it is that number
// minus one. Producer and consumer are Index values; the ring is empty when they
// are equal, and full one slot before the producer would catch up, so that it
// holds Capacity, one less than its slots.
type Mask uint32

// Valid reports whether the mask is a power of two minus one, and not 0.
func (m Mask) Valid() bool { return m != 0 && m&(m+1) == 0 }

// Wrap brings a word read from shared memory into the ring.
func (m Mask) Wrap(i uint32) Index { return Index(i & uint32(m)) }

// Next is the position after i.
func (m Mask) Next(i Index) Index { return m.Wrap(uint32(i) + 1) }

// Len is how many slots from consumer to producer are in use.
func (m Mask) Len(producer, consumer Index) int { return int(m.Wrap(uint32(producer - consumer))) }

// Full reports whether no slot is free.
func (m Mask) Full(producer, consumer Index) bool { return m.Next(producer) == consumer }

// Slots is the number of slots.
func (m Mask) Slots() int { return int(m) + 1 }

// Capacity is how many slots can be in use at once.
func (m Mask) Capacity() int { return int(m) }
