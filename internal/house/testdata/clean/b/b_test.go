package b

import "unsafe"

func ExampleCore() { _ = unsafe.Pointer(nil) }
