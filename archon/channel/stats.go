package channel

import (
	"time"

	"github.com/byteexpress/byteexpress/archon/channel/core"
)

// CallStats counts calls.
type CallStats struct {
	Calls    uint64
	Attempts uint64 // the first ones too
	Hedged   uint64 // calls that ended and had a hedge
	Failed   uint64 // calls that ended with an error
}

// Stats counts what a channel did.
type Stats struct {
	CallStats
	Denied    uint64 // retries and hedges that the budget did not allow
	Ejections uint64
	Replicas  []ReplicaStats
}

// ReplicaStats is the state of one replica, and what became of the ways to it.
type ReplicaStats struct {
	Name        string
	Path        core.Path // of new calls; core.NoPath: it cannot be reached
	Ejected     bool
	Attempts    uint64        // of all calls, at this replica
	Outstanding int           // of them, now
	Latency     time.Duration // moving average
	Fault       Reason        // why RDMA is not used; NoReason: it is, or would be
	Fallbacks   map[Reason]uint64
	Failures    map[Reason]uint64 // of connections and set-ups over RDMA
	Returns     uint64            // from TCP to RDMA
	Restarts    uint64            // new processes seen at the same address
	Trouble     error             // of the last connection or set-up that failed
}

// Stats gives the counts so far, and the replicas in no order.
func (ch *Channel) Stats() Stats {
	st := Stats{Denied: ch.budget.Denied(), Ejections: ch.set.Ejections()}
	for _, s := range ch.shards {
		s.mu.Lock()
		st.Calls += s.stats.Calls
		st.Attempts += s.stats.Attempts
		st.Hedged += s.stats.Hedged
		st.Failed += s.stats.Failed
		s.mu.Unlock()
	}
	for _, r := range ch.set.Replicas() {
		st.Replicas = append(st.Replicas, r.User.(*replica).stats())
	}
	return st
}

func (r *replica) stats() ReplicaStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := ReplicaStats{
		Name: r.name, Ejected: r.core.Ejected(), Attempts: r.attempts.Load(), Outstanding: r.core.Outstanding(), Latency: r.core.Mean(), Fault: r.fault,
		Fallbacks: counts(&r.links.Fallbacks), Failures: counts(&r.links.Failures), Returns: r.links.Returns, Restarts: r.restarts,
	}
	if c := r.use.Load(); c != nil {
		st.Path = c.path
	}
	if err := r.trouble.Load(); err != nil {
		st.Trouble = *err
	}
	return st
}

func counts(list *[core.NumReasons]uint64) map[Reason]uint64 {
	m := map[Reason]uint64{}
	for r, n := range list {
		if n > 0 {
			m[Reason(r)] = n
		}
	}
	return m
}
