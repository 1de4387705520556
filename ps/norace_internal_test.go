//go:build !race

package ps

const slowed = false
