//go:build ignore

package low

import "example.org/m/core"

var _ = core.X
