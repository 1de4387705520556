package main

// machine is a kind of virtual machine.
type machine struct {
	arch    string   // of its programs, as Go and Debian call it
	qemu    tool     // the emulator
	flags   []string // of the emulator, for the board and the processor
	console string   // the kernel's name of the first serial port
	report  string   // and of the second
	second  []string // what gives the machine its second serial port
	libDirs []string // where its loader looks for libraries
	slow    int      // how much longer than on amd64 things may take
	clock   string   // more arguments of the kernel, for measuring
}

// reportFile is where the emulator writes what comes out of the second serial port: a
// pipe of ours, the first of exec.Cmd.ExtraFiles.
const reportFile = "/dev/fd/3"

var (
	amd64 = machine{
		arch:    "amd64",
		qemu:    tool{"qemu-system-x86_64", "qemu-system-x86"},
		flags:   []string{"-cpu", "max"},
		console: "ttyS0",
		report:  "/dev/ttyS1",
		second:  []string{"-serial", "file:" + reportFile},
		// A Linux that mistrusts the emulated machine's time stamp counter makes each
		// reading of the clock a system call, which it is on no machine that matters.
		clock:   " tsc=reliable clocksource=tsc",
		libDirs: []string{"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib"},
		slow:    1,
	}
	// arm64's board has one serial port, so the second is a PCI card. To sign
	// pointers by the architecture's own cipher would take half of the emulation.
	arm64 = machine{
		arch:    "arm64",
		qemu:    tool{"qemu-system-aarch64", "qemu-system-arm"},
		flags:   []string{"-machine", "virt", "-cpu", "max,pauth-impdef=on"},
		console: "ttyAMA0",
		report:  "/dev/ttyS0",
		second:  []string{"-chardev", "file,id=report,path=" + reportFile, "-device", "pci-serial,chardev=report"},
		libDirs: []string{"/usr/lib/aarch64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib", "/lib"},
		slow:    2,
	}
)
