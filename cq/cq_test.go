package cq

import (
	"errors"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/internal/cconst"
)

var opcodes = []Opcode{Send, Write, Read, CompareSwap, FetchAdd, BindMW, LocalInvalidate, Recv, RecvWriteWithImm}

// Values against the C headers, and names too: they are the C ones without
// their prefix.
func TestConstants(t *testing.T) {
	want, err := cconst.Load("testdata/constants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{
		"IBV_WC_GRH":      uint64(HasGRH),
		"IBV_WC_WITH_IMM": uint64(HasImm),
		"IBV_WC_WITH_INV": uint64(HasInvalidate),
	}
	for s := Success; s < numStatus; s++ {
		got["IBV_WC_"+s.Name()] = uint64(s)
	}
	for _, o := range opcodes {
		got["IBV_WC_"+o.String()] = uint64(o)
	}
	for _, d := range cconst.Diff(got, want) {
		t.Error(d)
	}
}

// The identifiers, against the C names: Name comes from a table indexed by them,
// so a swap of two would not show above.
func TestStatusIdentifiers(t *testing.T) {
	for name, s := range map[string]Status{
		"SUCCESS": Success, "LOC_LEN_ERR": LocalLengthError, "LOC_QP_OP_ERR": LocalQPOperationError,
		"LOC_EEC_OP_ERR": LocalEECOperationError, "LOC_PROT_ERR": LocalProtectionError, "WR_FLUSH_ERR": WRFlushError,
		"MW_BIND_ERR": MWBindError, "BAD_RESP_ERR": BadResponseError, "LOC_ACCESS_ERR": LocalAccessError,
		"REM_INV_REQ_ERR": RemoteInvalidRequestError, "REM_ACCESS_ERR": RemoteAccessError, "REM_OP_ERR": RemoteOperationError,
		"RETRY_EXC_ERR": RetryExceededError, "RNR_RETRY_EXC_ERR": RNRRetryExceededError, "LOC_RDD_VIOL_ERR": LocalRDDViolationError,
		"REM_INV_RD_REQ_ERR": RemoteInvalidRDRequestError, "REM_ABORT_ERR": RemoteAbortedError, "INV_EECN_ERR": InvalidEECNumberError,
		"INV_EEC_STATE_ERR": InvalidEECStateError, "FATAL_ERR": FatalError, "RESP_TIMEOUT_ERR": ResponseTimeoutError,
		"GENERAL_ERR": GeneralError,
	} {
		if s.Name() != name {
			t.Errorf("status %d is %s, want %s", s, s.Name(), name)
		}
	}
}

func TestStatusText(t *testing.T) {
	for s := Success; s < numStatus; s++ {
		if s.String() == "" || s.Name() == "" {
			t.Errorf("status %d has no text or no name", uint32(s))
		}
		if (s.Causes() == "") != (s == Success) {
			t.Errorf("%s: causes %q", s.Name(), s.Causes())
		}
		for _, part := range []string{s.String(), s.Name(), s.Causes()} {
			if !strings.Contains(s.Error(), part) {
				t.Errorf("error of %s lacks %q: %s", s.Name(), part, s.Error())
			}
		}
	}
	for _, s := range []Status{numStatus, 1 << 31} {
		if s.Causes() != "" || !strings.HasPrefix(s.Name(), "STATUS_") || !strings.HasPrefix(s.Error(), "unknown status ") {
			t.Errorf("unknown status: %q, %q, %q", s.Name(), s.Error(), s.Causes())
		}
	}
}

func TestCompletionErr(t *testing.T) {
	ok := Completion{ID: 1, Status: Success}
	if err := ok.Err(); err != nil {
		t.Errorf("success: %v", err)
	}
	for s := LocalLengthError; s <= numStatus; s++ { // and one unknown
		c := Completion{ID: 0xabc, QPNum: 0x11, Status: s, VendorErr: 0x88}
		err := c.Err()
		if !errors.Is(err, s) || errors.Is(err, Success) || errors.Is(err, s+1) {
			t.Errorf("%s: errors.Is does not find exactly the status in %v", s.Name(), err)
		}
		var status Status
		var e *Error
		if !errors.As(err, &status) || status != s {
			t.Errorf("%s: errors.As gives status %d", s.Name(), uint32(status))
		}
		if !errors.As(err, &e) || *e != (Error{QPNum: 0x11, ID: 0xabc, Status: s, VendorErr: 0x88}) {
			t.Errorf("%s: errors.As gives %+v", s.Name(), e)
		}
		for _, part := range []string{"qp 0x11", "0xabc", s.Name(), "0x88"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error lacks %q: %v", part, err)
			}
		}
	}
}

func TestOpcode(t *testing.T) {
	for _, o := range opcodes {
		if want := o == Recv || o == RecvWriteWithImm; o.IsRecv() != want {
			t.Errorf("%v: IsRecv = %v", o, o.IsRecv())
		}
	}
	if got := Opcode(77).String(); got != "OPCODE_77" {
		t.Errorf("unknown opcode is %q", got)
	}
}
