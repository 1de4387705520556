//go:build race

package channel_test

// raceEnabled tells that sync.Pool drops things at random, so that allocations
// cannot be counted.
const raceEnabled = true
