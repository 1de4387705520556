//go:build !unix

package be

import (
	"testing"
	"time"
)

// CPUTime is not known here.
func CPUTime(testing.TB) time.Duration { return 0 }
