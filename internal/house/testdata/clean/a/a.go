// Package a is documented.
package a

import "golang.org/x/sys/unix"

// X is documented as a group.
const (
	X = unix.PAGE_SIZE
	Y = 2
)

// I is an interface.
type I interface {
	// Do does.
	Do()
	Undo() // undoes
}

type hidden struct{}

func (hidden) Exported() {}
