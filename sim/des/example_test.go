package des_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/sim/des"
)

func Example() {
	k := des.New()
	var bounce des.Kind
	bounce = k.Handle(func(ball, left int32) {
		fmt.Printf("%v: ball %d\n", k.Now().Duration(), ball)
		if left > 0 {
			k.At(k.Now()+des.Time(ball)*des.Microsecond, bounce, ball, left-1)
		}
	})
	k.At(0, bounce, 2, 2)
	k.At(0, bounce, 3, 1)
	if err := k.Run(des.Millisecond); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0s: ball 2
	// 0s: ball 3
	// 2µs: ball 2
	// 3µs: ball 3
	// 4µs: ball 2
}
