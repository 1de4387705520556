package cq

import "fmt"

// Status is the outcome of a work request. The values are those of enum
// ibv_wc_status in libibverbs/verbs.h, which are the kernel's enum ib_wc_status. A
// Status other than [Success] is an error: errors.Is compares
// the code.
type Status uint32

// The completion statuses of the verbs specification (IBTA 1.4, 11.6.2).
const (
	Success Status = iota
	LocalLengthError
	LocalQPOperationError
	LocalEECOperationError
	LocalProtectionError
	WRFlushError
	MWBindError
	BadResponseError
	LocalAccessError
	RemoteInvalidRequestError
	RemoteAccessError
	RemoteOperationError
	RetryExceededError
	RNRRetryExceededError
	LocalRDDViolationError
	RemoteInvalidRDRequestError
	RemoteAbortedError
	InvalidEECNumberError
	InvalidEECStateError
	FatalError
	ResponseTimeoutError
	GeneralError

	numStatus = iota
)

var statusText = [numStatus]struct{ name, text, causes string }{
	Success:                     {"SUCCESS", "success", ""},
	LocalLengthError:            {"LOC_LEN_ERR", "local length error", "the receive buffer is smaller than the message, or the message is longer than the port allows, or the two sides use different path MTUs"},
	LocalQPOperationError:       {"LOC_QP_OP_ERR", "local QP operation error", "the work request is malformed for this queue pair: opcode, segment count or inline length"},
	LocalEECOperationError:      {"LOC_EEC_OP_ERR", "local EE context operation error", "reliable datagram only; not expected on an RC queue pair"},
	LocalProtectionError:        {"LOC_PROT_ERR", "local protection error", "a local segment is outside its memory region, its lkey is unknown or deregistered, belongs to another protection domain, or lacks local-write"},
	WRFlushError:                {"WR_FLUSH_ERR", "work request flushed", "the queue pair entered the error state before this request ran; the first error completion of the queue pair has the cause"},
	MWBindError:                 {"MW_BIND_ERR", "memory window bind error", "the memory window may not be bound to that region"},
	BadResponseError:            {"BAD_RESP_ERR", "bad response", "the peer answered with an unexpected packet: mismatched queue pairs or a faulty peer"},
	LocalAccessError:            {"LOC_ACCESS_ERR", "local access error", "the target of a peer's WRITE with immediate was not accessible"},
	RemoteInvalidRequestError:   {"REM_INV_REQ_ERR", "remote invalid request", "the peer does not accept the operation: its receive buffer is too small, the operation is not enabled on its queue pair, or a misaligned atomic"},
	RemoteAccessError:           {"REM_ACCESS_ERR", "remote access error", "the rkey is unknown, deregistered or of another protection domain, the address is out of the region's bounds, or the region lacks that remote access"},
	RemoteOperationError:        {"REM_OP_ERR", "remote operation error", "the peer could not complete the operation: its queue pair failed"},
	RetryExceededError:          {"RETRY_EXC_ERR", "transport retry counter exceeded", "the peer did not answer: its process or host is gone, its queue pair is not in RTR, the path drops packets, or the GID, MTU or partition does not match"},
	RNRRetryExceededError:       {"RNR_RETRY_EXC_ERR", "RNR retry counter exceeded", "the peer had no receive posted for too long: it posts too few receives, or too late"},
	LocalRDDViolationError:      {"LOC_RDD_VIOL_ERR", "local RDD violation", "reliable datagram only; not expected on an RC queue pair"},
	RemoteInvalidRDRequestError: {"REM_INV_RD_REQ_ERR", "remote invalid RD request", "reliable datagram only; not expected on an RC queue pair"},
	RemoteAbortedError:          {"REM_ABORT_ERR", "remote aborted", "the peer aborted the operation"},
	InvalidEECNumberError:       {"INV_EECN_ERR", "invalid EE context number", "reliable datagram only; not expected on an RC queue pair"},
	InvalidEECStateError:        {"INV_EEC_STATE_ERR", "invalid EE context state", "reliable datagram only; not expected on an RC queue pair"},
	FatalError:                  {"FATAL_ERR", "fatal error", "the device failed; it must be opened again"},
	ResponseTimeoutError:        {"RESP_TIMEOUT_ERR", "response timeout", "the peer did not respond in time"},
	GeneralError:                {"GENERAL_ERR", "general error", "a vendor-specific error; see the completion's vendor code"},
}

// Name is the status's standard name without its prefix, as "RETRY_EXC_ERR".
func (s Status) Name() string {
	if int(s) < len(statusText) {
		return statusText[s].name
	}
	return fmt.Sprintf("STATUS_%d", uint32(s))
}

// String is the status in words, as "transport retry counter exceeded".
func (s Status) String() string {
	if int(s) < len(statusText) {
		return statusText[s].text
	}
	return fmt.Sprintf("unknown status %d", uint32(s))
}

// Causes tells in words what usually leads to this status; it is empty for
// [Success] and for unknown values.
func (s Status) Causes() string {
	if int(s) < len(statusText) {
		return statusText[s].causes
	}
	return ""
}

// Error makes a failed status an error value: words, standard name, and likely
// causes.
func (s Status) Error() string {
	if c := s.Causes(); c != "" {
		return fmt.Sprintf("%v (%s): %s", s.String(), s.Name(), c)
	}
	return fmt.Sprintf("%v (%s)", s.String(), s.Name())
}
