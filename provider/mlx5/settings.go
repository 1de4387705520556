package mlx5

import (
	"fmt"
	"strconv"

	"github.com/byteexpress/byteexpress/verbs"
)

// Settings are what an administrator may choose about the queues of a context. The
// zero value is the default. In the environment they have the names that rdma-core's
// provider has for them.
type Settings struct {
	// EntrySize is the length of completion queue entries, 64 or 128; 0 means 64.
	// 128 bytes are of use where that is a cache line. (MLX5_CQE_SIZE)
	EntrySize int
	// Inside lets the NIC put payload of up to 32 bytes (64 with long entries)
	// inside completions, which saves it a write; polling moves it to where it
	// belongs. It must be off where memory is registered that the processor cannot
	// address, as that of a GPU, and is off if not asked for. (MLX5_SCATTER_TO_CQE=1)
	Inside bool
	// BlueFlame says which requests are copied to the doorbell register.
	// (MLX5_POST_SEND_PREFER_BF=0: BlueFlameInline; MLX5_SHUT_UP_BF=1: BlueFlameNever)
	BlueFlame BlueFlame
	// QueuePages and CompletionPages are of what queue pairs' and completion queues'
	// memory consists. (MLX_QP_ALLOC_TYPE, MLX_CQ_ALLOC_TYPE: ANON, PREFER_HUGE, HUGE)
	QueuePages, CompletionPages Pages
}

// BlueFlame says which requests, if one is posted alone, are copied to the doorbell
// register as a whole to spare the NIC a read.
type BlueFlame uint8

// The kinds of use of BlueFlame.
const (
	BlueFlameAlways BlueFlame = iota // whatever fits
	BlueFlameInline                  // those with inline payload
	BlueFlameNever
)

// Pages are what a queue's memory consists of.
type Pages uint8

// The kinds of pages.
const (
	NormalPages Pages = iota // of the processor's smallest size
	PreferHuge               // of 2 MiB while the system has such, else NormalPages
	Huge                     // of 2 MiB, or the queue is not made
)

// SettingsFrom reads settings from an environment, as os.Getenv gives it. The error
// names the variable.
func SettingsFrom(getenv func(string) string) (s Settings, err error) {
	if v := getenv("MLX5_CQE_SIZE"); v != "" {
		if s.EntrySize, err = strconv.Atoi(v); err != nil || s.EntrySize != cqeSize && s.EntrySize != longEntry {
			return s, fmt.Errorf("%w: MLX5_CQE_SIZE=%s, must be 64 or 128", verbs.ErrLimit, v)
		}
	}
	s.Inside = getenv("MLX5_SCATTER_TO_CQE") != "" && getenv("MLX5_SCATTER_TO_CQE") != "0"
	if getenv("MLX5_POST_SEND_PREFER_BF") == "0" {
		s.BlueFlame = BlueFlameInline
	}
	if v := getenv("MLX5_SHUT_UP_BF"); v != "" && v != "0" {
		s.BlueFlame = BlueFlameNever
	}
	if s.QueuePages, err = pagesFrom(getenv, "MLX_QP_ALLOC_TYPE"); err == nil {
		s.CompletionPages, err = pagesFrom(getenv, "MLX_CQ_ALLOC_TYPE")
	}
	return s, err
}

func pagesFrom(getenv func(string) string, name string) (Pages, error) {
	switch v := getenv(name); v {
	case "", "ANON":
		return NormalPages, nil
	case "PREFER_HUGE", "ALL":
		return PreferHuge, nil
	case "HUGE":
		return Huge, nil
	default:
		return 0, fmt.Errorf("%w: %s=%s, must be ANON, PREFER_HUGE or HUGE", verbs.ErrLimit, name, v)
	}
}

// entry is the length of completion queue entries.
func (s *Settings) entry() int {
	if s.EntrySize == longEntry {
		return longEntry
	}
	return cqeSize
}
