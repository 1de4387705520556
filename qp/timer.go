package qp

import "time"

// AckTimeout is the local acknowledgement timeout in the verbs encoding, 5
// bits: 4.096 us times 2^value; 0 waits for ever (IBTA 1.4, 9.7.6.1.3).
type AckTimeout uint8

// Duration is the timeout, 0 for "never".
func (t AckTimeout) Duration() time.Duration {
	t &= 31
	if t == 0 {
		return 0
	}
	return 4096 * time.Nanosecond << t
}

// RNRTimer is the minimum wait after a receiver-not-ready answer in the verbs
// encoding, 5 bits (IBTA 1.4, table 45).
type RNRTimer uint8

// rnrMicros is the table of the specification, in microseconds. Value 0 is the
// longest wait, not none.
var rnrMicros = [32]int64{
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
}

// Duration is the wait.
func (t RNRTimer) Duration() time.Duration {
	return time.Duration(rnrMicros[t&31]) * time.Microsecond
}
