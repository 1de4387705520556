// Package provider opens RDMA devices by name: a device of the Linux kernel
// ("rxe0", "mlx5_0"), for whose driver there is a provider package, or a simulated
// one by a name like "sim:".
package provider
