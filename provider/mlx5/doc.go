// Package mlx5 drives NVIDIA (Mellanox) NICs from ConnectX-4 on: their work queue
// and completion queue entries, doorbell records and doorbell registers, and the
// verbs on top of package uverbs.
//
// Queues are this process's own memory, of which the NIC is told at creation. A
// send queue is a ring of 64-byte blocks; a request takes as many as it needs. To
// post, the provider writes the request, then its doorbell record (the number of
// blocks posted ever), then the doorbell: one 64-bit store of the request's first
// 8 bytes to a register, or, to spare the NIC a read, a copy of the whole request
// (BlueFlame). A receive queue has a doorbell record only. Completion queue entries
// carry an owner bit, which changes its meaning with each lap round the ring.
//
// Everything the NIC reads is big-endian; what the kernel reads is of the host's
// byte order. Sources: rdma-core's providers/mlx5 (mlx5dv.h, wqe.h) for the NIC's
// formats, rdma/mlx5-abi.h and rdma/mlx5_user_ioctl_cmds.h for the kernel's.
//
// The encoding is held against what rdma-core's provider writes for the same
// requests, and by a device model that reads the rings on its own (sim/mlx5dev).
// It has not been run on hardware yet: docs/mlx5.md.
//
// What an administrator may choose is read from the environment under rdma-core's
// names: [Settings].
package mlx5
