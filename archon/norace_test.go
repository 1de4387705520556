//go:build !race

package archon_test

const raceEnabled = false
