package bemalloc_test

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/bemalloc"
)

// A pool without a device serves plain memory; with Config.Registrar every buffer
// lies in a registered region, which MR names.
func Example() {
	pool, err := bemalloc.New(bemalloc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	buf, err := pool.Alloc(1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(buf), errors.Is(pool.Close(), bemalloc.ErrLeak))
	if err := pool.Free(buf); err != nil {
		fmt.Println(err)
	}
	fmt.Println(pool.Close())
	// Output:
	// 1000 true
	// <nil>
}
