package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// errFailed is the verdict of a run in which something failed.
var errFailed = fmt.Errorf("lab: FAIL")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch err {
	case nil:
		fmt.Println("lab: ok")
	case flag.ErrHelp:
	case errFailed:
		fmt.Println(err)
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(2)
	}
}

// options is what the command line and the environment ask for.
type options struct {
	suites    []string
	scenarios []scenario
	all       bool // every suite and scenario
	run       string
	count     int
	verbose   bool
	json      bool
	limit     time.Duration // for one item
	total     time.Duration // for the virtual machine
	kernels   []choice
	refresh   bool
	accel     string
	record    bool
	list      bool
	table     bool
	compare   bool

	image, modules string // another kernel
	device         string // this host's
	cache          string
}

func parse(args []string) (options, error) {
	o := options{image: os.Getenv("KERNEL"), modules: os.Getenv("MODULES"), device: os.Getenv("RDMA_DEVICE")}
	fs := flag.NewFlagSet("lab", flag.ContinueOnError)
	suites := fs.String("suites", "", "`packages` whose tests to run, by commas, or \"none\"; without -scenarios, no scenario then (default: all)")
	scen := fs.String("scenarios", "", "`regexp` of the scenarios to run, or \"none\"; without -suites, no suite then (default: all)")
	fs.StringVar(&o.run, "run", "", "`regexp` of the tests to run")
	fs.IntVar(&o.count, "count", 1, "run each test this many times")
	fs.BoolVar(&o.verbose, "v", false, "show all output, and the kernel's console")
	fs.BoolVar(&o.json, "json", false, "print each test's end as an event of go test -json too")
	fs.DurationVar(&o.limit, "limit", 5*time.Minute, "time limit of each suite and scenario")
	fs.DurationVar(&o.total, "timeout", 20*time.Minute, "time limit of the virtual machine")
	kernel := fs.String("kernel", kernels[0].name, "`names` of the kernels to run, by commas, or \"all\": see -list; one whose name ends with ? is skipped if it cannot be had")
	fs.BoolVar(&o.refresh, "refresh", false, "look for a newer package of the kernel")
	fs.StringVar(&o.accel, "accel", "tcg,thread=multi", "QEMU's accelerator")
	fs.BoolVar(&o.record, "record", false, "record what the tests show of each verb, for the table")
	fs.BoolVar(&o.table, "table", false, "make "+tablePath+" from the records, and run nothing")
	fs.BoolVar(&o.list, "list", false, "list suites, scenarios and kernels, and run nothing")
	fs.BoolVar(&o.compare, "compare", false, "measure bebench and perftest side by side, where -scenarios matches, run nothing else, and print a table")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("argument %q: everything is a flag: see -help", fs.Arg(0))
	}
	if (o.image == "") != (o.modules == "") {
		return o, fmt.Errorf("KERNEL=%q, MODULES=%q: another kernel needs both", o.image, o.modules)
	}
	pattern, err := regexp.Compile(*scen)
	if err != nil {
		return o, fmt.Errorf("-scenarios %q: %v", *scen, err)
	}
	o.all = *suites == "" && *scen == "" && o.run == ""
	o.suites = pickSuites(*suites, *scen)
	o.scenarios = pickScenarios(*suites, *scen, pattern)
	if o.compare {
		o.suites, o.scenarios = nil, matching(comparison(), pattern)
	}
	if len(o.suites)+len(o.scenarios) == 0 {
		return o, fmt.Errorf("-suites %q -scenarios %q: nothing to run: see -list", *suites, *scen)
	}
	if o.record && (o.run != "" || o.image != "" || o.device != "") {
		return o, fmt.Errorf("-record: it takes whole suites on a kernel of -list: leave -run, KERNEL and RDMA_DEVICE out")
	}
	if o.kernels, err = pickKernels(*kernel); err != nil {
		return o, err
	}
	o.cache, err = cacheDir()
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	switch {
	case err != nil:
		return err
	case o.list:
		list(o)
		return nil
	case o.table:
		return writeTable()
	case o.device != "":
		return runHost(ctx, o)
	}
	return runGuest(ctx, o)
}

func list(o options) {
	fmt.Println("suites:")
	for _, s := range o.suites {
		fmt.Println("  " + s)
	}
	fmt.Println("scenarios:")
	for _, s := range o.scenarios {
		fmt.Println("  " + s.name)
	}
	fmt.Println("kernels:")
	for _, k := range kernels {
		fmt.Printf("  %s (Debian %s, %s)\n", k.name, k.suite, k.machine.arch)
	}
}
