// Package perftest speaks the TCP exchange of the perftest programs (ib_send_bw,
// ib_write_lat and the others), so that bebench can be either end of a test with
// one of them. It moves no data: package verbtest does.
//
// The exchange is that of src/perftest_communication.c in linux-rdma/perftest, from
// version 5.70 on, over RC and without rdma_cm. Messages have no header: each has a
// fixed length, and which one is due follows from the test. In every step the client
// writes first and the server answers. In order:
//
//	version   16 bytes, a decimal number as text
//	page      4 bytes, big-endian: the length in bytes in which an end cycles through
//	          a buffer of short messages; both use the greater
//	line      the same for the length of a cache line
//	mtu       2 bytes, the verbs encoding as one digit of text
//	keys      for each queue pair a Key, and again once both ends are connected
//	run       the data; before it a barrier, which is the first key once more
//	report    bandwidth of one-sided operations: five numbers, see Report
//	close     a barrier, then both ends write "done"
//
// Lengths of messages and numbers of them and of queue pairs are not exchanged:
// both ends must be given the same ones.
//
// From version 6.28 on two ends also compare those numbers, in a structure that
// depends on how perftest was built. We say that we are older, which makes them leave
// it out.
package perftest
