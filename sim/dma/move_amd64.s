//go:build !race && !msan && !asan

#include "textflag.h"

// func moveStream(dst, src []byte)
TEXT ·moveStream(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ src_base+24(FP), SI
	SHRQ $6, CX
	SUBQ $64, CX // lines of the 4 KiB ahead
	JLE  last

line:
	PREFETCHNTA 4096(SI)
	VMOVDQU  (SI), Y0
	VMOVDQU  32(SI), Y1
	VMOVNTDQ Y0, (DI)
	VMOVNTDQ Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNE  line

last:
	ADDQ $64, CX
	JEQ  done

lastLine:
	VMOVDQU  (SI), Y0
	VMOVDQU  32(SI), Y1
	VMOVNTDQ Y0, (DI)
	VMOVNTDQ Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNE  lastLine

done:
	SFENCE
	VZEROUPPER
	RET

// func moveString(dst, src []byte)
TEXT ·moveString(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ src_base+24(FP), SI
	REP; MOVSB
	RET
