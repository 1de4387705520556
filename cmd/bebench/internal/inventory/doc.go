// Package inventory lists a machine's RDMA devices: what they are, what they can do,
// and which of them, of their ports and of their GIDs is used by default, and why.
//
// The document that it writes is described in docs/devices.md.
package inventory
