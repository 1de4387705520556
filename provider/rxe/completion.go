package rxe

import "github.com/byteexpress/byteexpress/cq"

// minCQElem is struct ib_uverbs_wc, which an element of a completion queue starts with.
const minCQElem = wcSize

// readCompletion decodes an element of a completion queue.
func readCompletion(e []byte, c *cq.Completion) {
	*c = cq.Completion{
		ID: wcWRID.Get(e), Status: cq.Status(wcStatus.Get(e)), VendorErr: wcVendorErr.Get(e), ByteLen: wcByteLen.Get(e),
		QPNum: cq.QPNum(wcQPNum.Get(e)), Opcode: cq.Opcode(wcOpcode.Get(e)), Flags: cq.Flags(wcWcFlags.Get(e)),
	}
	if c.Flags&cq.HasImm != 0 {
		c.Imm = wcImmData.Get(e)
	} else if c.Flags&cq.HasInvalidate != 0 {
		c.Imm = wcInvalidateRkey.Get(e)
	}
}
