//go:build race

package ps

// slowed tells that the race detector slows the tests down: they take fewer seeds.
const slowed = true
