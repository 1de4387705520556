package fabric

// LongestQueue is how many bytes wait in the longest data queue of a switch now.
func (f *Fabric) LongestQueue() (longest int) {
	for _, s := range f.switches {
		for _, p := range s.ports {
			longest = max(longest, p.queue[data].bytes)
		}
	}
	return longest
}

// HeadroomBytes is what of the switch's buffer is kept for frames that come in after
// a pause was sent.
func (s *Switch) HeadroomBytes() (n int) {
	for _, p := range s.ports {
		n += p.headroom
	}
	return n
}
