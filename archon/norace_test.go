//go:build !race

package archon

const raceEnabled = false
