package low

import (
	"example.org/m/core"
	"example.org/m/internal/support"
)

var _, _ = core.X, support.X
