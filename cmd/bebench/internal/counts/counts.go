// Package counts names those counts of a ByteExpress node that explain a result.
package counts

import "github.com/byteexpress/byteexpress/be"

// Of gives a node's counts so far. Times are in ns.
func Of(s *be.Stats) map[string]int64 {
	return map[string]int64{
		"credit_stalls": int64(s.CreditStalls), "credit_stall_ns": int64(s.CreditStall),
		"window_stalls": int64(s.WindowStalls), "window_stall_ns": int64(s.WindowStall),
		"slot_stalls": int64(s.SlotStalls), "slot_stall_ns": int64(s.SlotStall),
		"doorbells": int64(s.Doorbells), "requests": int64(s.Requests), "sends": int64(s.Sends), "fragments": int64(s.Fragments),
		"eager_messages": int64(s.Eager), "rendezvous_messages": int64(s.Rendezvous), "credit_messages": int64(s.CreditMessages),
		"rnr": int64(s.RNR), "failures": int64(s.Failures), "held": int64(s.Held), "copies": int64(s.Copies),
		"registrations": s.Memory.Register.Count,
	}
}

// Add adds the counts of m to sum.
func Add(sum, m map[string]int64) {
	for name, n := range m {
		sum[name] += n
	}
}

// Since gives what was counted between two readings.
func Since(now, before map[string]int64) map[string]int64 {
	d := map[string]int64{}
	for name, n := range now {
		d[name] = n - before[name]
	}
	return d
}
