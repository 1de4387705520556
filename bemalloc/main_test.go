package bemalloc

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childMode, when set in the environment, makes the test binary play the part of
// a child process; see memlock_linux_test.go.
const childMode = "BEMALLOC_TEST_CHILD"

// childParts are the parts it can play.
var childParts = map[string]func() error{}

func TestMain(m *testing.M) {
	if part := childParts[os.Getenv(childMode)]; part != nil {
		if err := part(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newRand gives a seeded source. BEMALLOC_SEED replays a failure.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("BEMALLOC_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("BEMALLOC_SEED: %v", err)
		}
	}
	t.Logf("seed: BEMALLOC_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// clock is a time that tests move by hand.
type clock struct{ t time.Time }

func newClock() *clock { return &clock{time.Unix(1_000_000, 0)} }

func (c *clock) now() time.Time          { return c.t }
func (c *clock) advance(d time.Duration) { c.t = c.t.Add(d) }

// kinds runs a test on the caches per P, where compiled in, and on the shards.
func kinds(t *testing.T, f func(t *testing.T, cfg Config)) {
	if havePin {
		t.Run("caches=perP", func(t *testing.T) { f(t, Config{}) })
	}
	t.Run("caches=shards", func(t *testing.T) { f(t, Config{forceShards: true}) })
}
