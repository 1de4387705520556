// Lab runs the tests that need an RDMA device, and two-process scenarios, on
// real Linux kernels: Debian's stock kernels in small virtual machines (QEMU, no KVM
// needed) with an rxe device (software RoCE) named rxe0.
//
//	go run ./lab                                      every scenario and suite
//	go run ./lab -suites ./provider/rxe -run TestX -v one suite, some of its tests, with their output
//	go run ./lab -scenarios bebench                   the scenarios whose name matches
//	go run ./lab -compare                             bebench and perftest side by side, and a table
//	go run ./lab -kernel 5.10,6.1-arm64               other kernels than the newest 6.1
//	go run ./lab -kernel all -record                  every kernel, and record what each can do
//	go run ./lab -table                               make docs/verbs.md from the records
//	go run ./lab -list                                what there is
//
// A suite is a package with tests that take their device from internal/testdev; of those
// with many others, such as be, these tests alone run, unless -run says otherwise or the
// machine has another architecture than this host. Its tests are built as a static
// binary and run in the guest as root, in a directory with the package's testdata, with
// RDMA_DEVICE=rxe0 and Debian's ibverbs-utils, rdmacm-utils, perftest and strace in PATH
// as peers. It passes only if at least one test that uses the device passed, none failed,
// none was skipped for want of a device, and the device's port is as before: its state,
// and its GIDs at their indices. On another architecture a few suites without a device run
// too, and what simulations compute there must be the same to the byte as on this host.
// Whatever does not report back from the guest has failed. A kernel that panics, locks up
// or falls silent ends its machine, and its last lines are shown.
//
// When a process of a scenario fails, the others get 3 s to end: a server of perftest
// would wait for ever for a client that never came. Whatever is ended then, or at -limit,
// says first where its threads are in the kernel, what the port has counted, and, if it is
// ours, where its goroutines are.
//
// On Debian, root gets what is missing by apt-get install; others are told what to
// install. Kernels, and the peers for another architecture than this host's, are
// downloaded and unpacked in the cache directory, never installed. Environment:
//
//	KERNEL, MODULES  another kernel, of amd64: its image (vmlinuz) and its module directory (lib/modules/VERSION)
//	RDMA_DEVICE      run on this device of this host instead of a virtual machine
//	LAB_CACHE        cache directory, .cache/lab in the repository by default
//
// The exit status is 0 when all is well, 1 when something failed, 2 when the lab
// could not be set up.
package main
