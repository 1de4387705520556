package nic

// Stats counts what a NIC did since it was made. All numbers only grow.
type Stats struct {
	Doorbells       uint64 // times the NIC was told of posted requests
	PacketsSent     uint64
	PacketsReceived uint64
	BytesSent       uint64 // payload
	BytesReceived   uint64 // payload that was placed in memory
	PacketsDropped  uint64 // arrived for no queue pair, or one that cannot take them, or over a port that is down
	Completions     uint64
	CQEvents        uint64 // notifications of armed completion queues
	CQOverflows     uint64
	Events          uint64 // asynchronous events
	AcksSent        uint64
	RNRNaksSent     uint64 // this side had no receive posted
	RNRNaksReceived uint64 // the peer had none
	SeqNaksSent     uint64 // a gap in the peer's packets
	SeqNaksReceived uint64
	FatalNaksSent   uint64
	Retransmits     uint64 // packets sent again
	Timeouts        uint64 // acknowledgement timer ran out
	Duplicates      uint64 // requests received again
	ImpliedNaks     uint64 // responses that were lost, noticed by later ones
	RevokedPayloads uint64 // packets whose sender took the memory back before they were read
	QPErrors        uint64 // queue pairs that entered the error state by themselves
}

// Stats gives the counters.
func (n *NIC) Stats() Stats { return n.stats }
