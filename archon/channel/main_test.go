package channel_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		serveProcess()
		return
	}
	goleak.VerifyTestMain(m)
}
