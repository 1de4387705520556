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
