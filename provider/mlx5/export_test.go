//go:build linux

package mlx5

import "github.com/byteexpress/byteexpress/verbs"

// Mapped gives the length of each mapping of registers by its offset.
func Mapped(ctx verbs.Context) map[int64]int {
	m := map[int64]int{}
	for _, p := range ctx.(*devContext).uars.pages {
		m[p.offset] = len(p.m.Bytes())
	}
	return m
}
