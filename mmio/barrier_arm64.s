#include "textflag.h"

// Barrier operands (Arm ARM, C6.2 DMB and DSB, field CRm).
#define OSHLD 1
#define OSHST 2
#define ST 14

// func WriteBarrier()
TEXT ·WriteBarrier(SB), NOSPLIT, $0-0
	DMB $OSHST
	RET

// func ReadBarrier()
TEXT ·ReadBarrier(SB), NOSPLIT, $0-0
	DMB $OSHLD
	RET

// func FlushWriteCombining()
TEXT ·FlushWriteCombining(SB), NOSPLIT, $0-0
	DSB $ST
	RET

// func Store64(p *uint64, v uint64)
TEXT ·Store64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	MOVD R1, (R0)
	RET

// func Store32(p *uint32, v uint32)
TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	MOVW R1, (R0)
	RET

// func storeBlock(dst *uint64, src *byte)
TEXT ·storeBlock(SB), NOSPLIT, $0-16
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	LDP (R1), (R2, R3)
	LDP 16(R1), (R4, R5)
	LDP 32(R1), (R6, R7)
	LDP 48(R1), (R8, R9)
	STP (R2, R3), (R0)
	STP (R4, R5), 16(R0)
	STP (R6, R7), 32(R0)
	STP (R8, R9), 48(R0)
	RET
