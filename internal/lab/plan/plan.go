// Package plan holds what the kernel lab's host asks of its guest, and the records
// in which the guest answers. Both travel as JSON: the plan as a file in the
// guest's initramfs, the records as lines on the guest's second serial port.
package plan

import "time"

// Path is where the guest finds its plan.
const Path = "/plan.json"

// Plan is one run of the lab. The host makes it, and nothing changes it.
type Plan struct {
	Nonce   string   // marks this run's records, so that no older output can pass for them
	Device  string   // RDMA device that the items use, as "rxe0"
	Modules []string // kernel modules to load, in this order: paths in the guest
	Report  string   // the serial port for the records, as "/dev/ttyS1"
	Items   []Item   // run one after the other
}

// Item is a test suite, or a scenario of several processes.
type Item struct {
	Name     string
	Tests    bool          // its only process is a Go test binary run with -test.v=test2json
	NoDevice bool          // its tests need no device: they are about the architecture
	Procs    []Proc        // started in this order, all running at once
	Limit    time.Duration // time for the whole item
}

// Proc is one process of an item. In Argv, "{device}" stands for the device's name,
// "{gid}" for the index of its RoCE v2 GID for IPv4, and "{addr}" for that address.
type Proc struct {
	Role  string   // "server", "client", "test"
	Argv  []string // Argv[0] is looked up in PATH
	Dir   string   // working directory; "" means the runner's own
	Port  int      // wait until this TCP port is listening before the next one starts; 0 means start it at once
	Exit  int      // exit status it must have
	Wants []string // its output must have each of these
}

// Kind says what a record tells.
type Kind string

// The kinds, in the order in which a good run sends them; Begin to End repeats for
// each item.
const (
	Boot   Kind = "boot"   // the guest is up; Text is the kernel's version
	Ready  Kind = "ready"  // the device is up; Text describes it
	Begin  Kind = "begin"  // Item starts
	Output Kind = "output" // Text is a line that process Role of Item wrote
	Exit   Kind = "exit"   // process Role of Item ended with Status, or could not be run: Text says why
	End    Kind = "end"    // Item is over after Millis
	Note   Kind = "note"   // Text is for the reader: part of the kernel's log
	Broken Kind = "broken" // the guest cannot go on; Text says why
	Done   Kind = "done"   // every item was run
)

// Record is one line of the guest's answer. Seq counts from 1 without gaps.
type Record struct {
	Nonce  string `json:"nonce"`
	Seq    int    `json:"seq"`
	Kind   Kind   `json:"kind"`
	Item   string `json:"item,omitempty"`
	Role   string `json:"role,omitempty"`
	Status int    `json:"status,omitempty"`
	Millis int64  `json:"millis,omitempty"`
	Text   string `json:"text,omitempty"`
}
