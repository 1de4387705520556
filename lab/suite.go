package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

// suites are the packages with tests for a device.
var suites = []string{
	"./internal/testdev/port",
	"./uverbs",
	"./uverbs/rdmacm",
	"./uverbs/rdmacm/stream",
	"./be",
	"./archon/channel",
	"./ps",
	"./bemalloc",
	"./provider",
	"./provider/rxe",
	"./cmd/bebench",
}

// plainSuites need no device, but a processor: what they test has parts in its
// assembly, depends on its memory model, or has to come out the same on all. They run on
// machines of another architecture than this host's.
var plainSuites = []string{"./mmio", "./sim/nic", "./sim/scenario"}

// digestTests are regexps of tests that log a SHA-256 of all that they computed. They
// alone run of their suites, and must log the same in the guest as on this host.
var digestTests = map[string]string{"sim/scenario": "^TestSameBytes$"}

// digest finds what they log.
var digest = regexp.MustCompile(`SHA-256 of .*: [0-9a-f]{64}`)

// deviceTests are regexps of the tests that use the device, in suites with many that do
// not. Those have nothing new to say on a machine of this host's architecture, where
// they ran already, and take minutes on an emulated processor.
var deviceTests = map[string]string{
	"be":             "^Test(Device|Victim)",
	"archon/channel": "^TestDevice",
	"ps":             "^TestDevice",
	"bemalloc":       "OnDevice$",
	"cmd/bebench":    "^TestDevice",
}

const (
	module  = "github.com/byteexpress/byteexpress"
	testdev = module + "/internal/testdev"
)

// pickSuites gives the suites that the flags -suites and -scenarios ask for.
func pickSuites(asked, scenarios string) []string {
	switch {
	case asked == "none" || asked == "" && scenarios != "":
		return nil
	case asked == "":
		return suites
	}
	return strings.Split(asked, ",")
}

// binary is a program built for the guest.
type binary struct {
	name     string // the suite's path in the repository, as "provider/rxe"
	file     string // on this host
	testdata string // the package's test data on this host, "" for none
	below    []tree // the test data of our packages that it imports: its tests may read them by ../
	plain    bool   // one of plainSuites
	run      string // regexp of the tests to run when the options name none, "" for all
	digest   string // what its output must have, "" for nothing
}

// tree is a directory on this host, and the path in the repository of its package.
type tree struct{ name, dir string }

// buildSuites builds the suites' test binaries in dir.
func buildSuites(ctx context.Context, dir, goarch string, pkgs []string) ([]binary, error) {
	var out []binary
	for _, pkg := range pkgs {
		b, err := buildSuite(ctx, dir, goarch, pkg)
		if err != nil {
			return nil, errors.Wrapf(err, "suite %s", pkg)
		}
		out = append(out, b)
	}
	return out, nil
}

func buildSuite(ctx context.Context, dir, goarch, pkg string) (binary, error) {
	found, err := golang(ctx, goarch, "list", "-f", "{{.ImportPath}} {{.Dir}}", pkg)
	if err != nil {
		return binary{}, err
	}
	importPath, src, _ := strings.Cut(strings.TrimSpace(found), " ")
	if strings.Contains(src, "\n") {
		return binary{}, errors.New("several packages: name them one by one")
	}
	b := binary{name: strings.TrimPrefix(importPath, module+"/"), plain: slices.Contains(plainSuites, pkg)}
	if goarch == runtime.GOARCH {
		b.run = deviceTests[b.name]
	}
	if run := digestTests[b.name]; run != "" {
		out, err := golang(ctx, runtime.GOARCH, "test", "-count=1", "-v", "-run="+run, pkg)
		if err != nil {
			return binary{}, err
		}
		if b.run, b.digest = run, digest.FindString(out); b.digest == "" {
			return binary{}, errors.Errorf("test %s logs no digest: %s", run, out)
		}
	}
	deps, err := golang(ctx, goarch, "list", "-deps", "-test", "-f", "{{.ImportPath}}\t{{.Dir}}", pkg)
	if err != nil {
		return binary{}, err
	}
	if !b.plain && !strings.Contains("\n"+deps, "\n"+testdev+"\t") {
		return binary{}, errors.New("no tests for a device: none of its tests imports internal/testdev")
	}
	for line := range strings.Lines(deps) {
		dep, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		dep, _, _ = strings.Cut(dep, " [") // as compiled for this test
		name, ours := strings.CutPrefix(dep, module+"/")
		if data := filepath.Join(dir, "testdata"); ours && name != b.name && isDir(data) {
			b.below = append(b.below, tree{name, data})
		}
	}
	b.file = filepath.Join(dir, strings.ReplaceAll(b.name, "/", "-")+".test")
	if _, err := golang(ctx, goarch, "test", "-c", "-ldflags=-s -w", "-o", b.file, pkg); err != nil {
		return binary{}, err
	}
	if data := filepath.Join(src, "testdata"); isDir(data) {
		b.testdata = data
	}
	return b, nil
}

// buildProgram builds a command of the module in dir.
func buildProgram(ctx context.Context, dir, goarch, pkg string) (binary, error) {
	b := binary{name: path.Base(pkg), file: filepath.Join(dir, path.Base(pkg))}
	_, err := golang(ctx, goarch, "build", "-ldflags=-s -w", "-o", b.file, pkg)
	return b, err
}

// golang runs the go command for a static program and gives its output.
func golang(ctx context.Context, goarch string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+goarch)
	return output(cmd)
}

// output runs a command; its error carries what the command said.
func output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = errors.Errorf("%s: %v: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

func isDir(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}

// suiteItem is a suite's item of the plan; file and dir are where it runs.
func suiteItem(b binary, file, dir string, o options) plan.Item {
	argv := []string{
		file, "-test.v=test2json", "-test.paniconexit0", fmt.Sprintf("-test.count=%d", o.count),
		"-test.timeout=" + (o.limit - o.limit/10).String(),
	}
	if run := cmp.Or(o.run, b.run); run != "" {
		argv = append(argv, "-test.run="+run)
	}
	test := plan.Proc{Role: "test", Argv: argv, Dir: dir}
	if b.digest != "" && o.run == "" {
		test.Wants = []string{b.digest}
	}
	return plan.Item{Name: b.name, Tests: true, NoDevice: b.plain, Limit: o.limit, Procs: []plan.Proc{test}}
}
