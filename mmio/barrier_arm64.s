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

// func Doorbell(record *uint32, count uint32, p *uint64, v uint64)
TEXT ·Doorbell(SB), NOSPLIT, $0-32
	MOVD record+0(FP), R2
	MOVWU count+8(FP), R3
	MOVD p+16(FP), R0
	MOVD v+24(FP), R1
	DMB $OSHST
	MOVW R3, (R2)
	DSB $ST
	MOVD R1, (R0)
	DSB $ST
	RET

// func Store32(p *uint32, v uint32)
TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	MOVW R1, (R0)
	RET

// func Release32(p *uint32, v uint32)
TEXT ·Release32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	STLRW R1, (R0)
	RET

// func DoorbellBlocks(record *uint32, count uint32, dst *uint64, src []byte)
TEXT ·DoorbellBlocks(SB), NOSPLIT, $0-48
	MOVD record+0(FP), R2
	MOVWU count+8(FP), R3
	MOVD dst+16(FP), R0
	MOVD src_base+24(FP), R1
	MOVD src_len+32(FP), R10
	DMB $OSHST
	MOVW R3, (R2)
	DSB $ST
	LSR $6, R10
	CBZ R10, done
next:
	LDP (R1), (R2, R3)
	LDP 16(R1), (R4, R5)
	LDP 32(R1), (R6, R7)
	LDP 48(R1), (R8, R9)
	STP (R2, R3), (R0)
	STP (R4, R5), 16(R0)
	STP (R6, R7), 32(R0)
	STP (R8, R9), 48(R0)
	ADD $64, R1
	ADD $64, R0
	SUBS $1, R10
	BNE next
done:
	DSB $ST
	RET
