package b

import (
	"unsafe"

	"go.uber.org/goleak"
)

func ExampleCore() { _, _ = goleak.Find, unsafe.Pointer(nil) }
