// Package b has a core.
package b

import (
	"math/rand/v2"
	"time"

	"example.org/m/a"
)

// Core decides with what it is given.
func Core(now time.Duration, r *rand.Rand) bool { return now > a.X*time.Second && r.IntN(2) == 0 }
