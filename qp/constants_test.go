package qp

import (
	"testing"

	"github.com/byteexpress/byteexpress/internal/cconst"
)

var opcodes = []Opcode{Write, WriteWithImm, Send, SendWithImm, Read, CompareSwap, FetchAdd, LocalInv, BindMW, SendWithInv}

var states = []State{Reset, Init, RTR, RTS, SQD, SQE, Err}

// Values against the C headers; the names of opcodes and states are the C ones
// without their prefix.
func TestConstants(t *testing.T) {
	want, err := cconst.Load("testdata/constants.tsv")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{
		"IBV_QP_STATE":               uint64(MaskState),
		"IBV_QP_CUR_STATE":           uint64(MaskCurState),
		"IBV_QP_EN_SQD_ASYNC_NOTIFY": uint64(MaskSQDNotify),
		"IBV_QP_ACCESS_FLAGS":        uint64(MaskAccess),
		"IBV_QP_PKEY_INDEX":          uint64(MaskPKeyIndex),
		"IBV_QP_PORT":                uint64(MaskPort),
		"IBV_QP_AV":                  uint64(MaskAV),
		"IBV_QP_PATH_MTU":            uint64(MaskPathMTU),
		"IBV_QP_TIMEOUT":             uint64(MaskAckTimeout),
		"IBV_QP_RETRY_CNT":           uint64(MaskRetryCount),
		"IBV_QP_RNR_RETRY":           uint64(MaskRNRRetry),
		"IBV_QP_RQ_PSN":              uint64(MaskRecvPSN),
		"IBV_QP_MAX_QP_RD_ATOMIC":    uint64(MaskMaxReads),
		"IBV_QP_MIN_RNR_TIMER":       uint64(MaskRNRTimer),
		"IBV_QP_SQ_PSN":              uint64(MaskSendPSN),
		"IBV_QP_MAX_DEST_RD_ATOMIC":  uint64(MaskMaxDestReads),
		"IBV_QP_DEST_QPN":            uint64(MaskDestNum),
		"IBV_SEND_FENCE":             uint64(Fence),
		"IBV_SEND_SIGNALED":          uint64(Signaled),
		"IBV_SEND_SOLICITED":         uint64(Solicited),
		"IBV_SEND_INLINE":            uint64(Inline),
		"IBV_MTU_256":                uint64(MTU256),
		"IBV_MTU_512":                uint64(MTU512),
		"IBV_MTU_1024":               uint64(MTU1024),
		"IBV_MTU_2048":               uint64(MTU2048),
		"IBV_MTU_4096":               uint64(MTU4096),
	}
	for _, o := range opcodes {
		got["IB_UVERBS_WR_"+o.String()] = uint64(o)
	}
	for _, s := range states {
		got["IBV_QPS_"+s.String()] = uint64(s)
	}
	for _, d := range cconst.Diff(got, want) {
		t.Error(d)
	}
}

// What each opcode is, one row each, as the specification's table of RC
// operations has it.
func TestOpcodeKinds(t *testing.T) {
	for o, want := range map[Opcode][3]bool{ // atomic, immediate, takes a receive
		Write: {false, false, false}, WriteWithImm: {false, true, true}, Send: {false, false, true},
		SendWithImm: {false, true, true}, Read: {}, CompareSwap: {true, false, false}, FetchAdd: {true, false, false},
		LocalInv: {}, BindMW: {}, SendWithInv: {false, false, true},
	} {
		if got := [3]bool{o.IsAtomic(), o.HasImm(), o.ConsumesRecv()}; got != want {
			t.Errorf("%v: atomic, immediate, takes a receive: %v, want %v", o, got, want)
		}
	}
	if !LocalInv.IsLocal() || !BindMW.IsLocal() || SendWithInv.IsLocal() || Write.IsLocal() {
		t.Error("what sends nothing is not told from the rest")
	}
	if got := Opcode(10).String(); got != "OPCODE_10" {
		t.Errorf("unknown opcode is %q", got)
	}
	if got := State(9).String(); got != "STATE_9" {
		t.Errorf("unknown state is %q", got)
	}
}

func TestMTU(t *testing.T) {
	for m, bytes := range map[MTU]int{0: 0, MTU256: 256, MTU512: 512, MTU1024: 1024, MTU2048: 2048, MTU4096: 4096, 6: 0, 255: 0} {
		if m.Bytes() != bytes {
			t.Errorf("%d: %d bytes, want %d", uint8(m), m.Bytes(), bytes)
		}
		if got, ok := MTUOf(bytes); bytes != 0 && (got != m || !ok) {
			t.Errorf("MTUOf(%d) = %v, %v", bytes, got, ok)
		}
	}
	for _, bytes := range []int{-1, 0, 1, 128, 255, 1500, 8192, 1 << 40} {
		if m, ok := MTUOf(bytes); ok {
			t.Errorf("MTUOf(%d) = %v", bytes, m)
		}
	}
	if MTU4096.String() != "4096" || MTU(9).String() != "MTU_9" {
		t.Errorf("strings %q and %q", MTU4096, MTU(9))
	}
}

func TestAttrMaskString(t *testing.T) {
	for m, want := range map[AttrMask]string{
		0:                              "0x0",
		MaskState | MaskPort:           "state, port",
		MaskRNRTimer | 1<<6 | MaskAV:   "address vector, RNR timer, 0x40",
		MaskDestNum | MaskMaxDestReads: "max destination reads, destination QP number",
	} {
		if got := m.String(); got != want {
			t.Errorf("%#x: %q, want %q", uint32(m), got, want)
		}
	}
}
