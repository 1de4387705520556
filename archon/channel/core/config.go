package core

import (
	"fmt"
	"time"
)

// Config tunes recovery. A zero field takes the default of that name; a negative one
// switches off what it is about, where the field says so. It is not changed after use.
type Config struct {
	// MaxAttempts bounds how often a call is sent, the first time counted. 1: never
	// again.
	MaxAttempts int
	// AttemptTimeout is how long an attempt of a repeatable call is waited for before
	// another begins, if the budget allows; the first goes on meanwhile. Negative:
	// until the deadline.
	AttemptTimeout time.Duration
	// BackoffBase is the longest pause before the first retry of a call that a replica
	// failed or refused. It doubles up to BackoffMax; the pause is drawn evenly below.
	BackoffBase, BackoffMax time.Duration
	// RetryRatio is what each call adds to the budget of retries and hedges, in
	// attempts; RetryBurst is how many of them can be saved up. So attempts are at most
	// (1 + RetryRatio) * calls + RetryBurst, not counting those that follow a lost
	// connection. Negative: nothing.
	RetryRatio float64
	RetryBurst int
	// WaitReady bounds how long a call waits while no replica can be reached; its
	// deadline may end it sooner. Negative: it fails at once.
	WaitReady time.Duration

	// HedgeQuantile is the part of attempts that are expected to be answered before
	// a hedge begins, below 1. Negative: there are no hedges.
	HedgeQuantile float64
	// HedgeMin is the least delay before a hedge.
	HedgeMin time.Duration

	// EjectConsecutive failures in a row eject a replica. Negative: they do not.
	EjectConsecutive int
	// EjectRatio is the part of failures within EjectInterval that ejects a replica, if
	// it was asked EjectVolume times. Negative: it does not.
	EjectRatio    float64
	EjectVolume   int
	EjectInterval time.Duration
	// EjectBase is how long a replica stays away the first time; it doubles up to
	// EjectMax while it fails again at once.
	EjectBase, EjectMax time.Duration
	// EjectShare is the part of replicas that may be ejected at a time, though one
	// of several always may. Negative: none, never.
	EjectShare float64

	// PingInterval and PingTimeout: a connection that carries nothing is asked whether it
	// lives every PingInterval, and is lost when it brought nothing for PingTimeout after
	// that. A dead one is found within DetectionBound.
	PingInterval, PingTimeout time.Duration
	// DialTimeout bounds the set-up of one connection.
	DialTimeout time.Duration
	// FallbackDelay is how long a first set-up over RDMA may take before TCP is tried
	// beside it.
	FallbackDelay time.Duration
	// RedialBase is the pause before a failed set-up is tried again; it doubles up to
	// RedialMax, half of it drawn.
	RedialBase, RedialMax time.Duration
	// Settle is how long RDMA must have worked after a failure before calls go over it
	// again. It doubles up to SettleMax each time that it fails soon after.
	Settle, SettleMax time.Duration
}

// Defaults of a Config.
const (
	DefaultMaxAttempts    = 5
	DefaultAttemptTimeout = time.Second
	DefaultBackoffBase    = 5 * time.Millisecond
	DefaultBackoffMax     = time.Second
	// DefaultRetryRatio and DefaultRetryBurst keep attempts below 1.2 of the calls from
	// the hundredth call on.
	DefaultRetryRatio       = 0.1
	DefaultRetryBurst       = 10
	DefaultWaitReady        = 10 * time.Second
	DefaultHedgeQuantile    = 0.95
	DefaultHedgeMin         = time.Millisecond
	DefaultEjectConsecutive = 5
	DefaultEjectRatio       = 0.5
	DefaultEjectVolume      = 20
	DefaultEjectInterval    = time.Second
	DefaultEjectBase        = time.Second
	DefaultEjectMax         = 30 * time.Second
	DefaultEjectShare       = 0.5
	DefaultPingInterval     = 500 * time.Millisecond
	DefaultPingTimeout      = time.Second
	DefaultDialTimeout      = 5 * time.Second
	DefaultFallbackDelay    = 500 * time.Millisecond
	DefaultRedialBase       = 20 * time.Millisecond
	DefaultRedialMax        = 2 * time.Second
	// DefaultSettle outlasts what a switch or a driver does to come back.
	DefaultSettle    = 10 * time.Second
	DefaultSettleMax = 5 * time.Minute
)

// WithDefaults gives the Config with its zero fields replaced, or names a field that
// cannot be.
func (c Config) WithDefaults() (Config, error) {
	def(&c.MaxAttempts, DefaultMaxAttempts)
	def(&c.AttemptTimeout, DefaultAttemptTimeout)
	def(&c.BackoffBase, DefaultBackoffBase)
	def(&c.BackoffMax, max(DefaultBackoffMax, c.BackoffBase))
	def(&c.RetryRatio, DefaultRetryRatio)
	def(&c.RetryBurst, DefaultRetryBurst)
	def(&c.WaitReady, DefaultWaitReady)
	def(&c.HedgeQuantile, DefaultHedgeQuantile)
	def(&c.HedgeMin, DefaultHedgeMin)
	def(&c.EjectConsecutive, DefaultEjectConsecutive)
	def(&c.EjectRatio, DefaultEjectRatio)
	def(&c.EjectVolume, DefaultEjectVolume)
	def(&c.EjectInterval, DefaultEjectInterval)
	def(&c.EjectBase, DefaultEjectBase)
	def(&c.EjectMax, max(DefaultEjectMax, c.EjectBase))
	def(&c.EjectShare, DefaultEjectShare)
	def(&c.PingInterval, DefaultPingInterval)
	def(&c.PingTimeout, DefaultPingTimeout)
	def(&c.DialTimeout, DefaultDialTimeout)
	def(&c.FallbackDelay, DefaultFallbackDelay)
	def(&c.RedialBase, DefaultRedialBase)
	def(&c.RedialMax, max(DefaultRedialMax, c.RedialBase))
	def(&c.Settle, DefaultSettle)
	def(&c.SettleMax, max(DefaultSettleMax, c.Settle))
	return c, c.check()
}

// SampleInterval is how often whoever drives a Link looks whether something came over
// its connections.
func (c Config) SampleInterval() time.Duration { return min(c.PingInterval/4, time.Second) }

// DetectionBound is how long a dead connection can go unnoticed.
func (c Config) DetectionBound() time.Duration {
	return c.SampleInterval() + c.PingInterval + c.PingTimeout
}

func (c Config) check() error {
	for _, f := range []struct {
		name string
		ok   bool
		v    any
		must string
	}{
		{"MaxAttempts", c.MaxAttempts >= 1 && c.MaxAttempts <= 100, c.MaxAttempts, "1 to 100"},
		{"BackoffBase", c.BackoffBase > 0, c.BackoffBase, "positive"},
		{"BackoffMax", c.BackoffMax >= c.BackoffBase, c.BackoffMax, "BackoffBase or more"},
		{"RetryRatio", c.RetryRatio <= 10, c.RetryRatio, "at most 10"},
		{"RetryBurst", c.RetryBurst <= 1_000_000, c.RetryBurst, "at most 1000000"},
		{"HedgeQuantile", c.HedgeQuantile < 1, c.HedgeQuantile, "below 1"},
		{"HedgeMin", c.HedgeMin > 0, c.HedgeMin, "positive"},
		{"EjectRatio", c.EjectRatio <= 1, c.EjectRatio, "at most 1"},
		{"EjectVolume", c.EjectVolume > 0, c.EjectVolume, "positive"},
		{"EjectInterval", c.EjectInterval > 0, c.EjectInterval, "positive"},
		{"EjectBase", c.EjectBase > 0, c.EjectBase, "positive"},
		{"EjectMax", c.EjectMax >= c.EjectBase, c.EjectMax, "EjectBase or more"},
		{"EjectShare", c.EjectShare <= 1, c.EjectShare, "at most 1"},
		{"PingInterval", c.PingInterval > 0, c.PingInterval, "positive"},
		{"PingTimeout", c.PingTimeout > 0, c.PingTimeout, "positive"},
		{"DialTimeout", c.DialTimeout > 0, c.DialTimeout, "positive"},
		{"FallbackDelay", c.FallbackDelay > 0, c.FallbackDelay, "positive"},
		{"RedialBase", c.RedialBase > 0, c.RedialBase, "positive"},
		{"RedialMax", c.RedialMax >= c.RedialBase, c.RedialMax, "RedialBase or more"},
		{"Settle", c.Settle > 0, c.Settle, "positive"},
		{"SettleMax", c.SettleMax >= c.Settle, c.SettleMax, "Settle or more"},
	} {
		if !f.ok {
			return fmt.Errorf("config: %s is %v, must be %s", f.name, f.v, f.must)
		}
	}
	return nil
}

func def[T int | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// doubled is base * 2^n, at most limit.
func doubled(base, limit time.Duration, n int) time.Duration {
	for ; n > 0 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}
