package bemalloc

import (
	"testing"

	"go.uber.org/goleak"
)

// No goroutine of a pool outlives its Close.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
