package rdmacm

import "fmt"

// Reason says why a peer, or its kernel, rejected a connection (IBTA 1.4, table 108;
// enum ib_cm_rej_reason in the kernel's rdma/ib_cm.h). It is an error, for errors.Is.
type Reason uint16

// The reasons that are met in practice.
const (
	ReasonNoResources      Reason = 3
	ReasonTimeout          Reason = 4
	ReasonInvalidServiceID Reason = 8 // nobody listens on that port
	ReasonStaleConn        Reason = 10
	ReasonConsumer         Reason = 28 // the application rejected, or went away
)

var reasonNames = [...]string{
	1: "no queue pair available", 2: "no end-to-end context available", 3: "no resources available", 4: "timeout",
	5: "unsupported request", 6: "invalid communication ID", 7: "invalid communication instance", 8: "nobody listens on that port",
	9: "invalid transport service type", 10: "stale connection", 11: "RDC does not exist", 12: "primary remote port GID rejected",
	13: "primary remote port LID rejected", 14: "invalid primary service level", 15: "invalid primary traffic class",
	16: "invalid primary hop limit", 17: "invalid primary packet rate", 18: "alternate remote port GID rejected",
	19: "alternate remote port LID rejected", 20: "invalid alternate service level", 21: "invalid alternate traffic class",
	22: "invalid alternate hop limit", 23: "invalid alternate packet rate", 24: "port and CM redirection", 25: "port redirection",
	26: "invalid path MTU", 27: "insufficient responder resources", 28: "by the application", 29: "RNR retry count rejected",
	30: "duplicate local communication ID", 31: "invalid class version", 32: "invalid primary flow label", 33: "invalid alternate flow label",
	35: "vendor option not supported",
}

// String is the reason in words and its number.
func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return fmt.Sprintf("%s (reason %d)", reasonNames[r], uint16(r))
	}
	return fmt.Sprintf("reason %d", uint16(r))
}

// Error is the reason in words and its number.
func (r Reason) Error() string { return r.String() }

// remedy says what to do, "" if that does not follow from the reason.
func (r Reason) remedy() string {
	switch r {
	case ReasonInvalidServiceID:
		return "start the peer, and check address and port"
	case ReasonConsumer:
		return "the peer's log may tell why"
	case ReasonNoResources, 27:
		return "ask for fewer outstanding READs, or free resources at the peer"
	case ReasonStaleConn, ReasonTimeout:
		return "try again"
	}
	return ""
}
