package a_test

import (
	"fmt"
	"time"

	"example.org/m/b"
	"go.uber.org/goleak"
)

func Example() {
	go fmt.Println(b.Core, time.Now(), goleak.Find())
}
