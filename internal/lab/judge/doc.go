// Package judge decides whether a run of the kernel lab was good, from the plan that
// the host made and the records that came back. It trusts nothing that it has not
// seen: an item of the plan is good only when its begin, the exit of each of its
// processes and its end arrived, in order, with nothing lost between them.
//
// A test suite is good when its binary exited with 0 and said PASS, at least one
// test passed that asked for the RDMA device, no test failed, and none was skipped for
// want of a device.
package judge
