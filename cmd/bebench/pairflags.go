package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/size"
)

// pairFlags are those that the tests of verbs and of ByteExpress sockets have in
// common.
type pairFlags struct {
	device deviceFlags
	peer   peerFlags
	output outputFlags

	size     size.Bytes
	all      bool
	duration seconds
	verify   bool
}

// command makes bw or lat of what is measured. own adds the flags between those of the
// peer and of the output, with so many messages as the default.
func (f *pairFlags) command(what string, latency bool, own func(fs *pflag.FlagSet, iters int), run func(*cobra.Command, []string) error) *cobra.Command {
	use, short, iters := "bw", "bandwidth of "+what, 5000
	f.size = 65536
	if latency {
		use, short, iters = "lat", "latency of "+what, 1000
		f.size = 2
	}
	c := &cobra.Command{
		Use: use + " [HOST]", Short: short, Long: short + ".\n" + aboutEnds, Args: atMostOneHost, DisableFlagsInUseLine: true, RunE: run,
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.device.add(fs)
	f.peer.add(fs)
	own(fs, iters)
	f.output.add(fs)
	return c
}

// addSizes adds the flags for sizes of messages.
func (f *pairFlags) addSizes(fs *pflag.FlagSet) {
	fs.VarP(&f.size, "size", "s", "message size, 1 to 2147483647 bytes; K, M, G are powers of 1024")
	fs.BoolVarP(&f.all, "all", "a", false, "all sizes from 2 to 2^23 bytes")
}

// addLength adds the flags for how long each size is run: by messages of each
// connection, or by time.
func (f *pairFlags) addLength(fs *pflag.FlagSet, iters *int, usual int, connection string) {
	fs.IntVarP(iters, "iters", "n", usual, "messages of each "+connection+" and size")
	fs.VarP(&f.duration, "duration", "D", "run each size for so many seconds instead of -n messages")
}

// addUnit adds the flag for the unit of bandwidth.
func (f *pairFlags) addUnit(fs *pflag.FlagSet) {
	fs.BoolVar(&f.output.gbits, "report_gbits", false, "bandwidth in Gbit/s instead of 2^20 bytes/s")
}

// check refuses contradictions.
func (f *pairFlags) check(c *cobra.Command, hosts []string, iters int, latency bool) error {
	set := c.Flags().Changed
	return firstOf(f.device.check(), f.peer.check(hosts, &f.device), f.output.check(), inRange("iters", iters, 1, 1<<40),
		contradict(f.all && set("size"), "-a and -s contradict each other"),
		contradict(f.duration > 0 && set("iters"), "-D and -n contradict each other"),
		contradict(latency && f.output.limits.minBW > 0, "lat measures no bandwidth, which --min-bw needs"),
	)
}

// contradict refuses flags that do not go together.
func contradict(bad bool, what string) error {
	if !bad {
		return nil
	}
	return exit.Usagef("%s: leave one of them out", what)
}

// maxAll is the longest message of -a, as in perftest.
const maxAll = 1 << 23

// sizes are those to measure.
func (f *pairFlags) sizes() []int {
	if !f.all {
		return []int{int(f.size)}
	}
	var list []int
	for n := 2; n <= maxAll; n *= 2 {
		list = append(list, n)
	}
	return list
}
