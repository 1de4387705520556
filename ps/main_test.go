package ps_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(replicaEnv) != "" {
		serveReplica()
		return
	}
	goleak.VerifyTestMain(m)
}
