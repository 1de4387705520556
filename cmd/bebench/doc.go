// Bebench measures ByteExpress and what is below it, and checks that the bytes
// are right.
//
//	bebench                           the main job: a parameter server over ByteExpress and over TCP
//	bebench devices                   the RDMA devices of this machine
//	bebench doctor                    what of the set-up keeps RDMA from working, and what mends it
//	bebench send|write|... bw|lat     verbs, as perftest does
//	bebench msg bw|lat                ByteExpress sockets
//	bebench rpc                       calls of archon, and streams
//	bebench ps                        the parameter-server job, on one host or several
//	bebench alloc                     the allocator's workloads
//	bebench alloc growth              registered bytes while a live set grows and stays
//	bebench fabric SCENARIO           simulated networks in virtual time
//
// A test between two hosts runs the same command on both: without a host it is
// the server, with one the client. On the simulator, and with --local, both ends
// run in one process.
//
// Exit status: 0 done, 1 wrong usage, 2 set-up or peer failed, 3 a threshold was
// missed, 4 data were wrong.
package main
