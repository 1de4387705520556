package fabric

// Buffer is a switch's buffer as the rules for thresholds see it (Zhu et al.,
// "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 4).
type Buffer struct {
	Bytes    float64 // of the chip
	Ports    int
	Classes  int     // that PFC can pause
	Headroom float64 // bytes of a port and class
}

// shared is what is not headroom.
func (b Buffer) shared() float64 {
	return b.Bytes - float64(b.Ports)*float64(b.Classes)*b.Headroom
}

// StaticPause is the highest fixed threshold of PFC with which the buffer cannot
// overflow.
func (b Buffer) StaticPause() float64 {
	return b.shared() / float64(b.Ports) / float64(b.Classes)
}

// MarkBelow is the bound for the threshold of ECN below which marks come before
// pauses, where the threshold of PFC is beta times what is free.
func (b Buffer) MarkBelow(beta float64) float64 {
	return beta * b.shared() / (float64(b.Ports) * float64(b.Classes) * (beta + 1))
}
