package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
	"github.com/byteexpress/byteexpress/internal/testdev/port"
)

// TestMain makes this binary act as a process of an item when its first argument
// is "act".
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "act" {
		goleak.VerifyTestMain(m)
	}
	os.Exit(act(os.Args[2], os.Args[3:]))
}

func act(what string, args []string) int {
	var err error
	switch what {
	case "print":
		fmt.Println(strings.Join(args, " "), os.Getenv("LAB_TEST"))
	case "exit":
		n, _ := strconv.Atoi(args[0])
		return n
	case "sleep":
		time.Sleep(time.Hour)
	case "orphan": // leaves a child that holds its output
		self, _ := os.Executable()
		child := exec.Command(self, "act", "sleep")
		child.Stdout = os.Stdout
		if err = child.Start(); err == nil {
			fmt.Println(child.Process.Pid)
		}
	case "long":
		fmt.Print(strings.Repeat("x", 3*maxLine), "\nend")
	case "serve": // late, and one client only
		time.Sleep(200 * time.Millisecond)
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+args[0]); err == nil {
			_, err = l.Accept()
		}
	case "dial": // once
		_, err = net.Dial("tcp", "127.0.0.1:"+args[0])
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func proc(t *testing.T, role string, args ...string) plan.Proc {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return plan.Proc{Role: role, Argv: append([]string{self, "act"}, args...)}
}

func run(t *testing.T, limit time.Duration, procs ...plan.Proc) []plan.Record {
	t.Helper()
	var buf bytes.Buffer
	r := Runner{Out: plan.NewWriter(&buf, "N"), Device: "rxe7", Env: append(os.Environ(), "LAB_TEST=yes")}
	r.Run(context.Background(), plan.Item{Name: "it", Procs: procs, Limit: limit})
	var out []plan.Record
	for l := range bytes.Lines(buf.Bytes()) {
		var rec plan.Record
		if err := json.Unmarshal(l, &rec); err != nil {
			t.Fatalf("record %q: %v", l, err)
		}
		if rec.Item != "it" || rec.Seq != len(out)+1 {
			t.Errorf("record %+v: want item it and number %d", rec, len(out)+1)
		}
		out = append(out, rec)
	}
	if n := len(out); n < 2 || out[0].Kind != plan.Begin || out[n-1].Kind != plan.End {
		t.Fatalf("records %+v: want a begin and an end", out)
	}
	return out
}

// exit is the exit record of a role.
func exit(t *testing.T, records []plan.Record, role string) plan.Record {
	t.Helper()
	i := slices.IndexFunc(records, func(r plan.Record) bool { return r.Kind == plan.Exit && r.Role == role })
	if i < 0 {
		t.Fatalf("no exit of %s in %+v", role, records)
	}
	return records[i]
}

func output(records []plan.Record) []string {
	var out []string
	for _, r := range records {
		if r.Kind == plan.Output {
			out = append(out, r.Text)
		}
	}
	return out
}

func TestArguments(t *testing.T) {
	got := run(t, time.Minute, proc(t, "p", "print", "-d", "{device}"))
	if want := []string{"-d rxe7 yes"}; !slices.Equal(output(got), want) {
		t.Errorf("output %q, want %q", output(got), want)
	}
	if e := exit(t, got, "p"); e.Status != 0 || e.Text != "" {
		t.Errorf("exit %+v, want status 0", e)
	}
}

func TestExitStatus(t *testing.T) {
	if e := exit(t, run(t, time.Minute, proc(t, "p", "exit", "5")), "p"); e.Status != 5 || e.Text != "" {
		t.Errorf("exit %+v, want status 5", e)
	}
}

func TestNoProgram(t *testing.T) {
	e := exit(t, run(t, time.Minute, plan.Proc{Role: "p", Port: 1, Argv: []string{"/no/such/program"}}), "p")
	if e.Status == 0 || !strings.Contains(e.Text, "/no/such/program") {
		t.Errorf("exit %+v, want one that names the program", e)
	}
}

func TestLimit(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGQUIT on Windows")
	}
	got := run(t, 2*time.Second, proc(t, "p", "sleep")) // time to begin, on a slow machine
	if e := exit(t, got, "p"); e.Status == 0 || !strings.Contains(e.Text, "still running after 2s") {
		t.Errorf("exit %+v, want the limit", e)
	}
	if all := strings.Join(output(got), "\n"); !strings.Contains(all, "time.Sleep") {
		t.Errorf("output %q: want the process's stacks", all)
	}
}

// A server whose client failed waits for ever for another: it is ended soon, and shows
// where it was.
func TestOneFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGQUIT on Windows")
	}
	got := run(t, 10*time.Minute, proc(t, "server", "sleep"), proc(t, "client", "exit", "2"))
	if e := exit(t, got, "server"); e.Status == 0 || !strings.Contains(e.Text, "after client had failed") {
		t.Errorf("exit %+v, want one that names the client", e)
	}
	all := strings.Join(output(got), "\n")
	if !strings.Contains(all, "time.Sleep") || runtime.GOOS == "linux" && !strings.Contains(all, " waits in ") {
		t.Errorf("output %q: want the server's stacks", all)
	}
}

// A suite that leaves the device's port otherwise than it was has failed.
func TestChanged(t *testing.T) {
	r := Runner{Device: "rxe7"} // which has no port, and so no GID
	if text := r.changed(port.Port{}); text != "" {
		t.Errorf("%q of a port that is as before", text)
	}
	before := port.Port{State: "4: ACTIVE", GIDs: []port.GID{{Index: 1, Addr: netip.MustParseAddr("10.9.0.1"), Type: "RoCE v2"}}}
	if text := r.changed(before); !strings.Contains(text, "left rxe7 changed") || !strings.Contains(text, `it was "4: ACTIVE, GID 1 10.9.0.1 (RoCE v2)"`) {
		t.Errorf("%q, want what it was", text)
	}
}

// An item whose arguments need a GID that is not there fails and says so.
func TestNoGID(t *testing.T) {
	e := exit(t, run(t, time.Minute, proc(t, "p", "print", "-x", "{gid}")), "p")
	if e.Status == 0 || !strings.Contains(e.Text, "rxe7") {
		t.Errorf("exit %+v, want one that names the device", e)
	}
}

func TestOrphan(t *testing.T) {
	got := run(t, time.Minute, proc(t, "p", "orphan"))
	pid, err := strconv.Atoi(strings.Join(output(got), ""))
	if err != nil {
		t.Fatal(err)
	}
	if child, err := os.FindProcess(pid); err == nil {
		defer child.Kill()
	}
	if e := exit(t, got, "p"); e.Status == 0 || !strings.Contains(e.Text, "left a process behind") {
		t.Errorf("exit %+v, want the process left behind", e)
	}
}

func TestLongLine(t *testing.T) {
	got := output(run(t, time.Minute, proc(t, "p", "long")))
	if all := strings.Join(got, ""); all != strings.Repeat("x", 3*maxLine)+"end" {
		t.Errorf("%d bytes of output in %d lines, want %d", len(all), len(got), 3*maxLine+3)
	}
	if len(got) < 4 || got[len(got)-1] != "end" {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}

// The client dials once: it must not start before the server listens.
func TestPort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/net/tcp")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if !listens(port) {
		t.Errorf("port %d: listener not seen", port)
	}
	l.Close()
	if listens(port) {
		t.Errorf("port %d: closed listener seen", port)
	}
	server := proc(t, "server", "serve", strconv.Itoa(port))
	server.Port = port
	got := run(t, time.Minute, server, proc(t, "client", "dial", strconv.Itoa(port)))
	for _, role := range []string{"server", "client"} {
		if e := exit(t, got, role); e.Status != 0 || e.Text != "" {
			t.Errorf("%s: exit %+v; output %q", role, e, output(got))
		}
	}
}

// A server that ends without listening does not hold up the item.
func TestPortNeverListens(t *testing.T) {
	server := proc(t, "server", "exit", "1")
	server.Port = 1
	got := run(t, time.Minute, server, proc(t, "client", "exit", "0"))
	if exit(t, got, "server").Status != 1 || exit(t, got, "client").Status != 0 {
		t.Errorf("records %+v", got)
	}
}
