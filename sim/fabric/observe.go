package fabric

// LongestQueue is how many bytes wait in the longest queue of a switch now, of those
// for data and for what switches may drop.
func (f *Fabric) LongestQueue() (longest int) {
	for _, s := range f.switches {
		for _, p := range s.ports {
			longest = max(longest, p.queue[data].bytes, p.queue[lossy].bytes)
		}
	}
	return longest
}
