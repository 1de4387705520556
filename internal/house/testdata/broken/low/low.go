// Package low imports upward.
package low

import (
	"C"
	"fmt"
	"log"
	"os"
	"unsafe"

	"example.org/m/high"
	"github.com/spf13/cobra"
)

//go:linkname now runtime.nanotime
func now() int64

// Documented is.
const Documented = 1

const Bare = 2

var (
	A, hidden = 1, 2
)

type T struct{}

func (t *T) Method() {}

type G[E any] struct{}

func (g *G[E]) Generic() {}

// I has a method without a comment.
type I interface {
	Do()
}

func F() {
	fmt.Println(high.X, cobra.Command{}, unsafe.Pointer(nil))
	log.Fatal(os.Stderr)
	println()
}
