package doctor

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func good() Facts {
	return Facts{Version: "v1", Device: "rxe0", Link: "Ethernet", MTU: 4096, Types: []string{"RoCE v1", "RoCE v2"}, GID: "::ffff:10.0.0.1", GIDType: "RoCE v2"}
}

func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(mine, theirs *Facts)
		check    string
		severity Severity
		found    string
	}{
		{"same", func(_, _ *Facts) {}, "", OK, ""},
		{"version", func(_, theirs *Facts) { theirs.Version = "v2" }, "peer-version", Warning, "here v1, there v2"},
		{"no device here", func(mine, _ *Facts) { *mine = Facts{Version: "v1"} }, "peer-device", Error, "this host has no device"},
		{"no device there", func(_, theirs *Facts) { *theirs = Facts{Version: "v1"} }, "peer-device", Error, "the peer has no device"},
		{"link layer", func(_, theirs *Facts) { theirs.Link = "InfiniBand" }, "peer-device", Error, "InfiniBand"},
		{"MTU", func(_, theirs *Facts) { theirs.MTU = 1024 }, "peer-mtu", Hint, "connections use 1024"},
		{"no type in common", func(mine, theirs *Facts) {
			mine.Types, mine.GIDType, theirs.Types = []string{"RoCE v1"}, "RoCE v1", []string{"RoCE v2"}
		}, "peer-gid", Error, "here RoCE v1, there RoCE v2"},
		{"no type at all there", func(_, theirs *Facts) { theirs.Types = nil }, "peer-gid", Error, "there none"},
		{"other default", func(_, theirs *Facts) { theirs.GIDType = "RoCE v1" }, "peer-gid", Warning, "connections are refused"},
		{"link-local", func(_, theirs *Facts) { theirs.Local, theirs.GID = true, "fe80::1" }, "peer-gid", Warning, "same link only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, mine, theirs := NewReport(time.Unix(0, 0)), good(), good()
			tt.change(&mine, &theirs)
			r.compare(mine, theirs)
			bad := 0
			for _, f := range r.Findings {
				if f.Severity == OK {
					continue
				}
				bad++
				if f.Check != tt.check || f.Severity != tt.severity || !strings.Contains(f.Found, tt.found) || f.Remedy == "" {
					t.Errorf("finding %+v, want %s %s with %q", f, tt.severity, tt.check, tt.found)
				}
			}
			if want := map[bool]int{true: 0, false: 1}[tt.check == ""]; bad != want {
				t.Errorf("%d findings that are not ok, want %d: %+v", bad, want, r.Findings)
			}
		})
	}
}

// serve answers one doctor and gives the address.
func serve(t *testing.T, s *control.Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx, ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return ln.Addr().String()
}

const limit = 5 * time.Second

func TestPeer(t *testing.T) {
	r := NewReport(time.Unix(0, 0))
	r.Compare(context.Background(), serve(t, Server(good(), limit)), limit, good())
	if r.Err() != nil || r.Summary[OK] != 5 || r.Peer != "127.0.0.1" {
		t.Errorf("%v, %+v", r.Err(), r.Findings)
	}
}

// What can be wrong with the way to a peer, each with its remedy.
func TestUnreachablePeer(t *testing.T) {
	closed := func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		return ln.Addr().String()
	}
	web := func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				c.Close()
			}
		}()
		t.Cleanup(func() { ln.Close() })
		return ln.Addr().String()
	}
	another := &control.Server{Hello: control.NewHello("write bw", nil), Limit: limit, Test: func(context.Context, *control.Conn) error { return nil }}
	for _, tt := range []struct {
		addr, check, found, remedy string
	}{
		{closed(), "tcp", "nothing listens there", "bebench doctor --serve"},
		{web(), "peer", "does not speak bebench's protocol", "another port with -p"},
		{serve(t, another), "peer", `server runs "write bw"`, "bebench doctor --serve"},
	} {
		r := NewReport(time.Unix(0, 0))
		r.Compare(context.Background(), tt.addr, limit, good())
		f := r.Findings[len(r.Findings)-1]
		if f.Check != tt.check || f.Severity != Error || !strings.Contains(f.Found, tt.found) || !strings.Contains(f.Remedy, tt.remedy) {
			t.Errorf("finding %+v, want %+v", f, tt)
		}
	}
	for _, tt := range []struct {
		err           error
		found, remedy string
	}{
		{&net.DNSError{Err: "no such host", Name: "nowhere"}, "name is not known", "DNS"},
		{&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "no way to the host", "ip route get"},
		{context.DeadlineExceeded, "firewall", "TCP port 18515"},
		{errors.New("strange"), "strange", "bebench doctor --serve"},
	} {
		if found, remedy := unreachable(&control.StepError{Step: "connect", Peer: "host", Err: tt.err}, "host:18515"); !strings.Contains(found, tt.found) || !strings.Contains(remedy, tt.remedy) {
			t.Errorf("%v: %q, %q", tt.err, found, remedy)
		}
	}
}

// The facts are those of the best device, simulated or not.
func TestFacts(t *testing.T) {
	dev, err := provider.Open("sim:")
	if err != nil {
		t.Fatal(err)
	}
	f := FactsOf("v1", []provider.Candidate{provider.Judge(dev)})
	if f.Version != "v1" || f.Device != "sim:" || f.Link != "Ethernet" || f.MTU != 4096 || len(f.Types) != 1 || f.GIDType != "RoCE v2" || f.Local || f.GID == "" {
		t.Errorf("%+v", f)
	}
	if f := FactsOf("v1", nil); f.Device != "" {
		t.Errorf("without devices: %+v", f)
	}
}

// A list of CPUs that makes no sense gives none, and takes no memory.
func FuzzCPUs(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,8", "3-1", "-5", "0-99999999999", "1-999999999", "a,2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for cpu := range cpus(s) {
			if cpu < 0 || cpu > maxCPUs {
				t.Fatalf("%q: CPU %d", s, cpu)
			}
		}
	})
}

func TestCPUs(t *testing.T) {
	got := cpus("0-2,8\n")
	if len(got) != 4 || !got[0] || !got[2] || !got[8] || got[3] {
		t.Errorf("%v", got)
	}
}

// A peer's words stay on their line and do nothing to the terminal, and its numbers
// are looked at.
func TestPeerThatLies(t *testing.T) {
	liar := Facts{
		Version: "\x1b[2J\nok  memlock  all is well" + strings.Repeat("A", 1<<16), Device: "d\x1b]0;x\x07", Link: "Ethernet", MTU: -5,
		Types: append([]string{"RoCE v2", "\x1b[1m"}, make([]string, 1000)...), GID: "\u009b5m\t", GIDType: "RoCE v2",
	}
	r := NewReport(time.Unix(0, 0))
	r.Compare(context.Background(), serve(t, Server(liar, limit)), limit, good())
	var mtu Severity
	for _, f := range r.Findings {
		if strings.ContainsFunc(f.Found, unicode.IsControl) || len(f.Found) > 1000 {
			t.Errorf("found %.1000q", f.Found)
		}
		if f.Check == "peer-mtu" {
			mtu = f.Severity
		}
	}
	if mtu != Error {
		t.Errorf("an MTU of -5 is %q", mtu)
	}
}
