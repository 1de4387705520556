// Package allocjob runs the two allocator workloads after the paper's figure 4
// over a bemalloc pool: large buffers (64 KiB to 1 MiB, exponential) and small
// ones (16 bytes to 16 KiB, linear), with a tenth of the buffers freed by another
// goroutine than the one that allocated them.
//
// The workload is a definition, not a distribution: sizes, order and hand-overs
// follow from fixed seeds, so that any program that follows it performs the same
// allocations in every thread, and [Result.Checksum] must be the same.
package allocjob
