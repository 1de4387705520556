package b

import (
	"testing"
	"unsafe"

	"go.uber.org/goleak"
)

func ExampleCore() { _, _ = goleak.Find, unsafe.Pointer(nil) }

func TestOff(t *testing.T) {}
