package cq_test

import (
	"errors"
	"fmt"

	"github.com/byteexpress/byteexpress/cq"
)

// A failed completion tells which request failed, how, and what usually leads to
// it; its status is found with errors.Is.
func ExampleCompletion_Err() {
	c := cq.Completion{ID: 7, QPNum: 0x11, Status: cq.RNRRetryExceededError, VendorErr: 0x97}
	err := c.Err()
	fmt.Println(err)
	switch {
	case errors.Is(err, cq.WRFlushError):
		fmt.Println("only a follower of an earlier error")
	case errors.Is(err, cq.RNRRetryExceededError):
		fmt.Println("post more receives at the peer")
	}
	// Output:
	// qp 0x11: request 0x7: RNR retry counter exceeded (RNR_RETRY_EXC_ERR): the peer had no receive posted for too long: it posts too few receives, or too late (vendor code 0x97)
	// post more receives at the peer
}
