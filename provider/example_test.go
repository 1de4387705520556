package provider_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/provider"
)

// Open the best device of this machine and say which one it is.
func Example() {
	dev, note, err := provider.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(dev.Info().Name, note)
}

// The remedy of an unknown name lists the names there are.
func ExampleOpen() {
	if _, err := provider.Open("mlx9_0"); err != nil {
		fmt.Println("cannot open mlx9_0")
	}
	// Output: cannot open mlx9_0
}
