//go:build !amd64 || race || msan || asan

package dma

const lineBytes = 64

func moveThrough(dst, src []byte) { copy(dst, src) }

func moveAround(dst, src []byte) { copy(dst, src) }
