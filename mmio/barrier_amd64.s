#include "textflag.h"

// func WriteBarrier()
// Stores to write-back memory are seen in program order; the call keeps the
// compiler from moving any across.
TEXT ·WriteBarrier(SB), NOSPLIT, $0-0
	RET

// func ReadBarrier()
TEXT ·ReadBarrier(SB), NOSPLIT, $0-0
	LFENCE
	RET

// func FlushWriteCombining()
TEXT ·FlushWriteCombining(SB), NOSPLIT, $0-0
	SFENCE
	RET

// func Store64(p *uint64, v uint64)
TEXT ·Store64(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ BX, (AX)
	RET

// func Store32(p *uint32, v uint32)
TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), BX
	MOVL BX, (AX)
	RET

// func storeBlock(dst *uint64, src *byte)
TEXT ·storeBlock(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)
	RET
