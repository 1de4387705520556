package qp

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The legal steps as the numbers that the kernel's table gives (qp_state_table in
// drivers/infiniband/core/verbs.c), without the bits that this module does not
// have: written by hand, not derived from the code under test.
var legal = map[[2]State]struct{ must, may AttrMask }{
	{Reset, Init}:  {0x39, 0},
	{Init, Init}:   {0x1, 0x38},
	{Init, RTR}:    {0x129181, 0x18},
	{RTR, RTS}:     {0x12e01, 0x800a},
	{RTS, RTS}:     {0x1, 0x800a},
	{RTS, SQD}:     {0x1, 0x4},
	{SQD, RTS}:     {0x1, 0x800a},
	{SQD, SQD}:     {0x1, 0x2aeb8},
	{Reset, Reset}: {0x1, 0}, {Init, Reset}: {0x1, 0}, {RTR, Reset}: {0x1, 0}, {RTS, Reset}: {0x1, 0},
	{SQD, Reset}: {0x1, 0}, {SQE, Reset}: {0x1, 0}, {Err, Reset}: {0x1, 0},
	{Init, Err}: {0x1, 0}, {RTR, Err}: {0x1, 0}, {RTS, Err}: {0x1, 0}, {SQD, Err}: {0x1, 0}, {SQE, Err}: {0x1, 0}, {Err, Err}: {0x1, 0},
}

// Every pair of states, two unknown ones included; for each, masks around the
// required one and random masks.
func TestCheckTransition(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	accepted := 0
	try := func(from, to State, mask AttrMask) {
		l, known := legal[[2]State{from, to}]
		want := known && mask&l.must == l.must && mask&^(l.must|l.may) == 0
		err := CheckTransition(from, to, mask)
		if (err == nil) != want {
			t.Errorf("%v to %v with %#x: error %v, legal %v", from, to, uint32(mask), err, want)
		}
		if err != nil && (!errors.Is(err, ErrTransition) || !strings.Contains(err.Error(), from.String()) || !strings.Contains(err.Error(), to.String())) {
			t.Errorf("error is not ErrTransition or does not name both states: %v", err)
		}
		if err == nil {
			accepted++
		}
	}
	for from := Reset; from <= Err+2; from++ {
		for to := Reset; to <= Err+2; to++ {
			l := legal[[2]State{from, to}]
			base := []AttrMask{0, l.must, l.must | l.may, ^AttrMask(0)}
			for _, m := range base {
				try(from, to, m)
				for bit := range 32 {
					try(from, to, m^1<<bit)
				}
			}
			for range 1000 {
				try(from, to, l.must|AttrMask(rnd.Uint32())&l.may)
				try(from, to, AttrMask(rnd.Uint32()))
			}
		}
	}
	if accepted < 20*len(legal) {
		t.Errorf("only %d tries were legal: the test tries too little", accepted)
	}
}

func TestCheckTransitionNamesAttributes(t *testing.T) {
	err := CheckTransition(Init, RTR, 0x129181&^MaskAV|MaskSendPSN)
	if err == nil || !strings.Contains(err.Error(), "INIT to RTR: attributes missing: address vector") {
		t.Errorf("missing attribute: %v", err)
	}
	err = CheckTransition(Init, RTR, 0x129181|MaskSendPSN)
	if err == nil || !strings.Contains(err.Error(), "attributes not allowed: send PSN") {
		t.Errorf("attribute too many: %v", err)
	}
}
