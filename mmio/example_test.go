package mmio_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mmio"
)

// A word in shared memory that one side stores and the other loads, as the
// producer index of a ring.
func Example() {
	m, err := mmio.Anonymous(4096)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	producer := m.Uint32(128)
	mmio.StoreUint32(producer, 5)
	fmt.Println(mmio.LoadUint32(producer), len(m.Bytes()))
	// Output: 5 4096
}
