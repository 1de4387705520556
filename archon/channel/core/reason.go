package core

// Reason is why RDMA to a replica was not to be had, or ended.
type Reason uint8

// Reasons, in the order in which a connection comes up.
const (
	NoReason       Reason = iota
	NoDevice              // this side has no RDMA, or cannot open it
	NoPort                // its port is down or has no usable GID
	NoDomain              // protection domain
	NoMemory              // registration of memory, or registered memory at its limit
	NoCQ                  // creation of a completion queue
	NoArm                 // arming of a completion queue
	NoQP                  // creation of a queue pair
	InitFailed            // step to INIT
	RTRFailed             // step to RTR
	RTSFailed             // step to RTS
	NoPeer                // the replica has no address for RDMA
	Unreachable           // the bootstrap connection failed
	Greeting              // the hellos did not come to an agreement
	RoCEVersion           // no common RoCE version
	Version               // no common version of the protocol
	PeerRefused           // the replica refused, or its side of the set-up failed
	OpenFailed            // the first messages did not get through
	TimedOut              // the set-up took too long
	Slow                  // the set-up took so long that TCP was ready first
	PeerClosed            // the replica left in good order
	PeerLost              // its process or host is gone
	Silent                // it did not answer a ping in time
	RetryExceeded         // the queue pair's retries were used up
	QPFailed              // the queue pair failed otherwise
	DeviceLost            // this side's device is gone
	ProtocolBroken        // it sent what the protocol does not allow
	Other
	NumReasons int = iota
)

var reasons = [NumReasons]string{
	"none", "no_device", "no_port", "no_pd", "no_memory", "no_cq", "no_arm", "no_qp", "qp_init", "qp_rtr", "qp_rts", "no_peer_rdma",
	"unreachable", "greeting", "roce_version", "protocol_version", "peer_refused", "first_send", "timeout", "slow", "peer_closed",
	"peer_lost", "silent", "retry_exceeded", "qp_failed", "device_lost", "protocol", "other",
}

// String is the name under which it is counted.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown"
}
