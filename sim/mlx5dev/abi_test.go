package mlx5dev

import (
	_ "embed"
	"testing"

	"github.com/byteexpress/byteexpress/internal/abi/abicheck"
)

//go:embed layout.go
var layoutSource string

func TestABI(t *testing.T) { abicheck.File(t, "layout.go", layoutSource) }
