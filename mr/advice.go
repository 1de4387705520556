package mr

import "fmt"

// Advice says how memory with on-demand paging will be used soon (enum
// ib_uverbs_advise_mr_advice in rdma/ib_user_ioctl_verbs.h).
type Advice uint8

// The advices. Each brings pages in before a request needs them.
const (
	Prefetch        Advice = 0 // for reading
	PrefetchWrite   Advice = 1 // for reading and writing
	PrefetchNoFault Advice = 2 // only pages that are in memory already
)

// String is the advice in words.
func (a Advice) String() string {
	switch a {
	case Prefetch:
		return "prefetch"
	case PrefetchWrite:
		return "prefetch-write"
	case PrefetchNoFault:
		return "prefetch-no-fault"
	}
	return fmt.Sprintf("advice %d", uint8(a))
}
