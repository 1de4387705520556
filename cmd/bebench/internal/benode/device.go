package benode

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// deviceCounters are the names under which devices count what the engines do not see:
// packets or requests sent again, and receivers that were not ready. Those of a
// simulated NIC are sim/nic.Stats; those of kernel devices are files of sysfs
// (drivers/infiniband/sw/rxe/rxe_hw_counters.c, drivers/infiniband/hw/mlx5/counters.c).
var deviceCounters = map[string]string{
	"Retransmits":           "device_retransmissions",
	"completer_retry_err":   "device_retransmissions", // rxe
	"local_ack_timeout_err": "device_retransmissions", // mlx5
	"packet_seq_err":        "device_retransmissions", // mlx5: the peer asked for it
	"RNRNaksReceived":       "device_rnr",
	"rcvd_rnr_err":          "device_rnr", // rxe
	"rnr_nak_retry_err":     "device_rnr", // mlx5
	"CQOverflows":           "device_cq_overflows",
}

// DeviceCounts gives what the device counted so far, where it tells.
func (n *Node) DeviceCounts() map[string]int64 {
	m := map[string]int64{}
	count := func(name string, v int64) {
		if ours, ok := deviceCounters[name]; ok {
			m[ours] += v
		}
	}
	if c, ok := n.ctx.(interface{ Counters() map[string]uint64 }); ok {
		for name, v := range c.Counters() {
			count(name, int64(v))
		}
		return m
	}
	files, _ := filepath.Glob(filepath.Join("/sys/class/infiniband", n.ctx.Info().Name, "ports/*/hw_counters/*")) // the pattern is right
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			if v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
				count(filepath.Base(f), v)
			}
		}
	}
	return m
}
