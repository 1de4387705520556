//go:build race

package fabric

// raceEnabled tells that runs of one goroutine, whose numbers are the same without the
// race detector, need not be as many.
const raceEnabled = true
