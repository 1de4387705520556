package qp_test

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/qp"
)

// PSNs wrap at 2^24.
func ExamplePSN() {
	p := qp.PSN(0xfffffe)
	q := p.Add(3)
	fmt.Println(q, p.Less(q), q.Sub(p))
	// Output: 1 true 3
}

func ExampleCheckTransition() {
	mask := qp.MaskState | qp.MaskPKeyIndex | qp.MaskPort
	fmt.Println(qp.CheckTransition(qp.Reset, qp.Init, mask))
	fmt.Println(qp.CheckTransition(qp.Reset, qp.Init, mask|qp.MaskAccess))
	fmt.Println(errors.Is(qp.CheckTransition(qp.Reset, qp.RTS, mask), qp.ErrTransition))
	// Output:
	// illegal queue pair transition: RESET to INIT: attributes missing: access flags
	// <nil>
	// true
}

// A request is checked against the capacities that its queue pair was given.
func ExampleSendWR_Check() {
	caps := qp.Caps{SendSGE: 1, Inline: 64}
	wr := qp.SendWR{Opcode: qp.Send, Flags: qp.Inline | qp.Signaled, Inline: make([]byte, 100)}
	fmt.Println(wr.Check(&caps))
	// Output: inline payload is longer than the queue pair was created for
}
