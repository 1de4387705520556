#include "textflag.h"

// func Doorbell(record *uint32, count uint32, p *uint64, v uint64)
TEXT ·Doorbell(SB), NOSPLIT, $0-32
	MOVQ record+0(FP), CX
	MOVL count+8(FP), DX
	MOVQ p+16(FP), AX
	MOVQ v+24(FP), BX
	MOVL DX, (CX)
	SFENCE
	MOVQ BX, (AX)
	SFENCE
	RET

// func Store32(p *uint32, v uint32)
TEXT ·Store32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), BX
	MOVL BX, (AX)
	RET

// func Release32(p *uint32, v uint32)
TEXT ·Release32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), BX
	MOVL BX, (AX)
	RET

// func DoorbellBlocks(record *uint32, count uint32, dst *uint64, src []byte)
TEXT ·DoorbellBlocks(SB), NOSPLIT, $0-48
	MOVQ record+0(FP), AX
	MOVL count+8(FP), DX
	MOVQ dst+16(FP), DI
	MOVQ src_base+24(FP), SI
	MOVQ src_len+32(FP), CX
	MOVL DX, (AX)
	SFENCE
	SHRQ $6, CX
	JEQ done
next:
	MOVQ (SI), AX
	MOVQ 8(SI), BX
	MOVQ 16(SI), DX
	MOVQ 24(SI), R8
	MOVQ AX, (DI)
	MOVQ BX, 8(DI)
	MOVQ DX, 16(DI)
	MOVQ R8, 24(DI)
	MOVQ 32(SI), AX
	MOVQ 40(SI), BX
	MOVQ 48(SI), DX
	MOVQ 56(SI), R8
	MOVQ AX, 32(DI)
	MOVQ BX, 40(DI)
	MOVQ DX, 48(DI)
	MOVQ R8, 56(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNE next
done:
	SFENCE
	RET
