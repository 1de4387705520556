package main

import (
	"context"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clean keeps the tester's own environment out of a test.
func clean(t *testing.T) {
	for _, name := range []string{"KERNEL", "MODULES", "RDMA_DEVICE", "LAB_CACHE"} {
		t.Setenv(name, "")
	}
}

func TestSelection(t *testing.T) {
	clean(t)
	for _, tc := range []struct {
		args              string
		suites, scenarios int
	}{
		{"", len(suites), len(scenarios)},
		{"-suites ./a,./b", 2, 0},
		{"-scenarios .", 0, len(scenarios)},
		{"-suites ./a -scenarios .", 1, len(scenarios)},
		{"-suites none -scenarios .", 0, len(scenarios)},
		{"-suites ./a -scenarios none", 1, 0},
		{"-scenarios none", 0, 0},
		{"-scenarios no-such-name", 0, 0},
	} {
		o, err := parse(strings.Fields(tc.args))
		if len(o.suites) != tc.suites || len(o.scenarios) != tc.scenarios {
			t.Errorf("%q: %d suites, %d scenarios; want %d, %d", tc.args, len(o.suites), len(o.scenarios), tc.suites, tc.scenarios)
		}
		if nothing := tc.suites+tc.scenarios == 0; nothing != (err != nil) {
			t.Errorf("%q: error %v; one is due: %t", tc.args, err, nothing)
		}
	}
}

func TestBadArguments(t *testing.T) {
	clean(t)
	for args, want := range map[string]string{
		"./uverbs":       "everything is a flag",
		"-scenarios (":   "-scenarios",
		"-nosuch":        "-nosuch",
		"-kernel 2.4":    `"2.4"`,
		"-record -run X": "it takes whole suites",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", args, err, want)
		}
	}
	t.Setenv("KERNEL", "vmlinuz")
	if _, err := parse(nil); err == nil || !strings.Contains(err.Error(), "needs both") {
		t.Errorf("KERNEL without MODULES: error %v", err)
	}
}

func TestUnknownDevice(t *testing.T) {
	clean(t)
	t.Setenv("RDMA_DEVICE", "nodevice9")
	if err := run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "nodevice9") {
		t.Errorf("error %v, want one that names the device", err)
	}
}

func TestPickKernels(t *testing.T) {
	for asked, want := range map[string]string{
		"6.1":                  "6.1 amd64",
		"6.12?,5.10":           "6.12 amd64 optional, 5.10 amd64",
		"6.1-arm64":            "6.1-arm64 arm64",
		"all":                  "6.1 amd64, 6.12 amd64, 5.10 amd64, sid amd64, 6.1-arm64 arm64",
		"6.1,2.4":              `-kernel "2.4": no such kernel`,
		"":                     `-kernel "": no such kernel`,
		"6.1 -record -run Foo": `-kernel "6.1 -record -run Foo": no such kernel`,
	} {
		picked, err := pickKernels(asked)
		var got []string
		for _, k := range picked {
			text := k.name + " " + k.machine.arch
			if k.optional {
				text += " optional"
			}
			got = append(got, text)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if text := strings.Join(got, ", "); !strings.HasPrefix(text, want) {
			t.Errorf("%q: %s, want %s", asked, text, want)
		}
	}
}

// A kernel that cannot be had is skipped only if it may be.
func TestNoKernel(t *testing.T) {
	clean(t)
	t.Setenv("PATH", t.TempDir()) // no apt-get
	o := options{cache: t.TempDir(), kernels: []choice{{kernels[0], true}, {kernels[1], true}}}
	if err := runGuest(t.Context(), o); err != nil {
		t.Errorf("only optional kernels: %v", err)
	}
	o.kernels[1].optional = false
	if err := runGuest(t.Context(), o); err != errFailed {
		t.Errorf("one that is asked for, among others: %v", err)
	}
	o.kernels = o.kernels[1:]
	if err := runGuest(t.Context(), o); err == nil || !strings.Contains(err.Error(), "linux-image-amd64 of Debian trixie: this host is not Debian") {
		t.Errorf("one that is asked for: %v", err)
	}
}

// Without a way to install, the error says what to install.
func TestNeedSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no apt-get
	err := need(context.Background(), []tool{{"qemu-x", "qemu-pkg"}, {"peer-x", "peer-pkg"}, {"peer-y", "peer-pkg"}, {"/no/such/file", "file-pkg"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"qemu-x", "peer-y", "/no/such/file", "apt-get install file-pkg peer-pkg qemu-pkg", "RDMA_DEVICE="} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if err := need(context.Background(), []tool{{os.Args[0], "go"}}); err != nil {
		t.Errorf("nothing missing: %v", err)
	}
}

// Every package with tests for a device is a suite, once: the tests of one left out
// would run nowhere.
func TestSuitesComplete(t *testing.T) {
	var found []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "judge") { // the judge knows the mark only
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			if i.Path.Value == strconv.Quote(testdev) {
				rel, _ := filepath.Rel("..", filepath.Dir(path))
				found = append(found, "./"+filepath.ToSlash(rel))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	listed := slices.Sorted(slices.Values(suites))
	if diff := cmp.Diff(slices.Compact(found), listed); diff != "" {
		t.Errorf("packages with tests for a device, and suites:\n%s", diff)
	}
}

// A package that would silently test nothing is refused.
func TestSuiteWithoutDeviceTests(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	for pkg, want := range map[string]string{
		"../internal/lab/cpio": "no tests for a device",
		"../internal/lab/...":  "several packages",
		"../no/such/package":   "no/such/package",
	} {
		if _, err := buildSuite(t.Context(), t.TempDir(), "amd64", pkg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", pkg, err, want)
		}
	}
}

func TestLocate(t *testing.T) {
	for _, tc := range []struct {
		desc, image, module string
		ok                  bool
	}{
		{"Debian 12", "boot/vmlinuz-6.1.0", "lib/modules/6.1.0/kernel/a.ko", true},
		{"Debian 13", "boot/vmlinuz-6.12", "usr/lib/modules/6.12/kernel/a.ko.xz", true},
		{"sid", "usr/lib/modules/7.2/vmlinuz", "usr/lib/modules/7.2/kernel/a.ko.xz", true},
		{"no image", "boot/config-6.1.0", "lib/modules/6.1.0/kernel/a.ko", false},
		{"no modules", "boot/vmlinuz-6.1.0", "lib/firmware/a", false},
	} {
		root := t.TempDir()
		for _, f := range []string{tc.image, tc.module} {
			path := filepath.Join(root, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		u, err := locate(root)
		if (err == nil) != tc.ok {
			t.Errorf("%s: error %v", tc.desc, err)
		}
		if tc.ok && (u.image != filepath.Join(root, tc.image) || !strings.HasPrefix(filepath.Join(root, tc.module), u.modules+string(filepath.Separator))) {
			t.Errorf("%s: got %+v", tc.desc, u)
		}
	}
}

// Two scenarios on one TCP port would disturb each other.
func TestScenarios(t *testing.T) {
	names, ports := map[string]bool{}, map[int]string{}
	for _, s := range scenarios {
		if names[s.name] {
			t.Errorf("two scenarios %q", s.name)
		}
		names[s.name] = true
		roles := map[string]bool{}
		for _, p := range s.procs {
			if roles[p.Role] {
				t.Errorf("%s: two processes %q", s.name, p.Role)
			}
			roles[p.Role] = true
			if other := ports[p.Port]; p.Port != 0 && other != "" {
				t.Errorf("%s: port %d is also of %s", s.name, p.Port, other)
			}
			ports[p.Port] = s.name
		}
	}
}
