package rdmacm

import (
	_ "embed"
	"testing"

	"github.com/byteexpress/byteexpress/internal/abi/abicheck"
)

//go:embed abi.go
var abiSource string

//go:embed event.go
var eventSource string

func TestABI(t *testing.T) {
	abicheck.File(t, "abi.go", abiSource)
	abicheck.File(t, "event.go", eventSource)
}
