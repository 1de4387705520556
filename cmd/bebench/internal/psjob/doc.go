// Package psjob is the parameter-server job: workers fetch rows from shards and
// push gradients to them, over any transport of archon, while it measures each
// request and verifies every value.
//
// The job runs in slices. In a slice every worker keeps a number of requests
// outstanding until its list of requests is done; latency counts from the issue
// of a request to the moment when the worker's goroutine has the rows in hand.
// The responses are held until the slice has ended, and then compared bit by bit
// with what they must be. So verification costs the measured part nothing, and
// what it costs is the same over every transport. Time, CPU and allocations are
// those of the slices alone.
//
// Inference fetches only: a row has the values that follow from seed and key.
// Training alternates a slice of fetches with a slice of pushes to the same rows.
// Gradients are small whole numbers, the learning rate is 1 and rows begin as 0,
// so float32 sums are exact in any order and every row has one right value at all
// times; at the end all rows that were pushed to are read back.
package psjob
