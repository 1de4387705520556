package a

import "unsafe"

const size = unsafe.Sizeof(0)
