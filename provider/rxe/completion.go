package rxe

import "github.com/byteexpress/byteexpress/cq"

// minCQElem is struct ib_uverbs_wc, which an element of a completion queue starts with.
const minCQElem = wcSize

// wcWithInvalidate is IB_WC_WITH_INVALIDATE of enum ib_wc_flags in the kernel's
// rdma/ib_verbs.h, which the driver writes where libibverbs has IBV_WC_IP_CSUM_OK. A
// reliable connection has no such checksum to report.
const wcWithInvalidate cq.Flags = 1 << 2

// readCompletion decodes an element of a completion queue.
func readCompletion(e []byte, c *cq.Completion) {
	*c = cq.Completion{
		ID: wcWRID.Get(e), Status: cq.Status(wcStatus.Get(e)), VendorErr: wcVendorErr.Get(e), ByteLen: wcByteLen.Get(e),
		QPNum: cq.QPNum(wcQPNum.Get(e)), Opcode: cq.Opcode(wcOpcode.Get(e)), Flags: cq.Flags(wcWcFlags.Get(e)),
	}
	if c.Flags&wcWithInvalidate != 0 {
		c.Flags = c.Flags&^wcWithInvalidate | cq.HasInvalidate
	}
	if c.Flags&cq.HasImm != 0 {
		c.Imm = wcImmData.Get(e)
	} else if c.Flags&cq.HasInvalidate != 0 {
		c.Imm = wcInvalidateRkey.Get(e)
	}
}
