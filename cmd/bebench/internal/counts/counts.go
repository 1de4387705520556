// Package counts names those counts of a ByteExpress node that explain a result.
package counts

import (
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/be/core"
)

// Of gives a node's counts so far. Times are in ns.
func Of(s *be.Stats) map[string]int64 {
	m := OfEngine(&s.Stats)
	m["registrations"] = s.Memory.Register.Count
	m["strays"] = int64(s.Strays)
	return m
}

// OfEngine gives an engine's counts so far. Times are in ns.
func OfEngine(s *core.Stats) map[string]int64 {
	return map[string]int64{
		"credit_stalls": int64(s.CreditStalls), "credit_stall_ns": int64(s.CreditStall),
		"window_stalls": int64(s.WindowStalls), "window_stall_ns": int64(s.WindowStall),
		"node_window_stalls": int64(s.CapStalls), "node_window_stall_ns": int64(s.CapStall),
		"slot_stalls": int64(s.SlotStalls), "slot_stall_ns": int64(s.SlotStall),
		"doorbells": int64(s.Doorbells), "requests": int64(s.Requests), "signaled": int64(s.Signaled),
		"sends": int64(s.Sends), "fragments": int64(s.Fragments), "reads": int64(s.Reads), "recv_posts": int64(s.RecvPosts),
		"eager_messages": int64(s.Eager), "packed_messages": int64(s.Packed), "rendezvous_messages": int64(s.Rendezvous), "get_messages": int64(s.Offered),
		"credit_messages": int64(s.CreditMessages), "rejected": int64(s.Rejected), "canceled": int64(s.Canceled),
		"rnr": int64(s.RNR), "failures": int64(s.Failures), "held": int64(s.Held), "queued": int64(s.Queued), "copies": int64(s.Copies),
	}
}

// Levels gives what a node has at the moment: the lengths of its queues, and its
// registered memory by key domain, in bytes.
func Levels(s *be.Stats) map[string]int64 {
	return map[string]int64{
		"queue_messages": int64(s.Sending), "queue_controls": int64(s.Controls), "queue_in_flight": int64(s.InFlight),
		"queue_receives": int64(s.Posted), "queue_held": int64(s.Waiting),
		"registered_local_bytes": s.Registered.Local, "registered_writable_bytes": s.Registered.Writable, "registered_readable_bytes": s.Registered.Readable,
	}
}

// Add adds the counts of m to sum.
func Add(sum, m map[string]int64) {
	for name, n := range m {
		sum[name] += n
	}
}

// Peak raises the counts of peak to those of m.
func Peak(peak, m map[string]int64) {
	for name, n := range m {
		peak[name] = max(peak[name], n)
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
