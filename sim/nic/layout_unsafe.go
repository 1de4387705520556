package nic

import "unsafe"

// Where what is fetched into the cache together lies.
const (
	softAt    = unsafe.Offsetof((*QP)(nil).soft)
	softBytes = unsafe.Sizeof((*QP)(nil).soft)
	busyBytes = sendAt + unsafe.Offsetof((*sendQueue)(nil).sges)
	sendAt    = unsafe.Offsetof((*QP)(nil).sq)
	sendBytes = unsafe.Offsetof((*sendQueue)(nil).inline)
	recvAt    = unsafe.Offsetof((*QP)(nil).rq)
	recvBytes = unsafe.Sizeof((*QP)(nil).rq)
	capsAt    = unsafe.Offsetof((*QP)(nil).caps)
	capsBytes = unsafe.Sizeof((*QP)(nil).caps)
	fillAt    = unsafe.Offsetof((*CQ)(nil).filler)
	fillBytes = unsafe.Sizeof((*CQ)(nil).filler)
)
