package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/sim"
)

// asCommand makes the test binary run as bebench itself.
const asCommand = "BEBENCH_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// result is what a run of the command gave.
type result struct {
	code        int
	out, errout string
}

// bebench runs the command in this process.
func bebench(ctx context.Context, args ...string) result {
	var out, errout bytes.Buffer
	code := run(ctx, args, &out, &errout)
	return result{code, out.String(), errout.String()}
}

// onSim makes a command line one for the simulator, whatever devices there are.
func onSim(line string) []string {
	args := strings.Fields(line)
	switch args[0] {
	case "devices", "-D":
		return args
	}
	return append(args, "-d", "sim:")
}

// process starts the command as a process of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit status %d, want %d\n%s%s", r.code, code, r.out, r.errout)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.errout, text) {
			t.Errorf("%q is missing in:\n%s%s", text, r.out, r.errout)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string
	}{
		{"wirte bw", "did you mean write?"},
		{"write", "say which: bw, lat"},
		{"write bandwidth", `no command "bandwidth"`},
		{"write bw --sise 4", "did you mean --size?"},
		{"write bw --tx_depth 4", "did you mean --tx-depth?"},
		{"write bw -X 4", "did you mean -x?"},
		{"write bw -R -x 1", "-R and -x contradict each other"},
		{"write bw -R --flow-label 1", "rdma_cm chooses them"},
		{"write bw -R --local", "--local and -R contradict each other"},
		{"write bw -R --peer perftest", "--peer perftest and -R"},
		{"ps -R --transport tcp", "contradict"},
		{"send bw --retry 8", "--retry 8: must be 1 to 7"},
		{"send bw --rnr-timer 32", "--rnr-timer 32: must be 1 to 31"},
		{"send bw --hop-limit 0", "--hop-limit 0: must be 1 to 255"},
		{"msg bw --flow-label 1048576", "--flow-label 1048576: must be 0 to 1048575"},
		{"msg bw -S 8", "--sl 8: must be 0 to 7"},
		{"ps --tclass 256", "--tclass 256: must be 0 to 255"},
		{"ps -u 32", "--qp-timeout 32: must be 1 to 31"},
		{"write bw -s 0", "1 to 2147483647 bytes"},
		{"write bw -s 2147483648", "1 to 2147483647 bytes"},
		{"msg lat -s 0", "1 to 2147483647 bytes"},
		{"msg bw -s 2G", "1 to 2147483647 bytes"},
		{"ps --max-size 2147483648", "1 to 2147483647 bytes"},
		{"send lat -n 0", "--iters 0: must be 1 to"},
		{"send lat -D 0", "want seconds"},
		{"send bw -a -s 64", "contradict"},
		{"send bw -D 1 -n 5", "contradict"},
		{"send bw -t 4 -l 8", "-l 8 is more than -t 4"},
		{"send bw -t 4 -Q 8", "-Q 8 is more than -t 4"},
		{"read bw -I 64", "only SEND and WRITE can be inline"},
		{"write lat -e", "there is no event"},
		{"send bw --threads 2", "each thread needs a queue pair"},
		{"send bw -N --max-p99 5", "-N measures no latency"},
		{"send lat --min-bw 5", "lat measures no bandwidth"},
		{"send lat -b", "send lat: -b is for bw, not for lat"},
		{"send lat --report_gbits", "--report_gbits is for bw, not for lat"},
		{"send lat --report_gbit", "unknown flag"},
		{"send lat -F", "unknown shorthand flag"},
		{"atomic bw -s 8", "an atomic has 8 bytes"},
		{"msg bw --window 100", "--window 100: must be 256 to"},
		{"msg bw --fragment 100", "--fragment 100: must be 256 to"},
		{"msg bw --node-window 100", "--node-window 100: must be 256 to"},
		{"msg bw --pack 64K", "--pack 65536: must be 0 to 65535"},
		{"msg bw --workers 0", "--workers 0: must be 1 to 64"},
		{"msg bw --spin -1s", "--spin -1s: must not be negative"},
		{"msg lat --weights 1,0", "--weights 0: must be 1 to 1024"},
		{"msg bw --transport udp", "want be or tcp"},
		{"msg bw --transport tcp --workers 2", "--transport tcp and --workers contradict"},
		{"msg compare --over rdma", "want be, tcp or copy"},
		{"msg compare --sizes 0", "1 to 2147483647 bytes"},
		{"msg compare -d sim: --sockets 9000", "--sizes 1048576 and --sockets 9000: a message posted on each socket would be 9000 MiB, at most 2048"},
		{"msg compare --also x", "want NAME=PROGRAM"},
		{"msg compare -R", "contradict"},
		{"send bw --timeout 0.5", "--timeout 500ms: at least 1s"},
		{"send bw --peer iperf", "want bebench or perftest"},
		{"write-imm bw --peer perftest", "leave one of them out"},
		{"send bw --peer perftest --verify", "--verify"},
		{"send bw --peer perftest -b", "-b"},
		{"write lat --peer perftest -D 1", "-D"},
		{"send bw a b", "at most one host"},
		{"send bw --local a", "contradict"},
		{"send bw -1 a", "contradict\x00-1 is for the server"},
		{"send bw -1 --local", "-1 is for a server"},
		{"send bw -p 0", "--port 0"},
		{"send bw -m 1000", "must be one of 0 256 512 1024 2048 4096"},
		{"send bw --timeout 1ms", "at least 1s"},
		{"send bw --json - --json-stream", "both write to standard output"},
		{"send bw --progress loud", "auto, always or never"},
		{"send bw --max-mean -1", "--max-mean -1: must be more than 0"},
		{"send lat --max-p99 0", "--max-p99 0: must be more than 0"},
		{"send bw --min-bw NaN", "--min-bw NaN: must be more than 0"},
		{"send bw --json /", "--json /: not a regular file"},
		{"alloc --max-p99 5", "unknown flag: --max-p99"},
		{"alloc growth --min-msgrate 5", "unknown flag: --min-msgrate"},
		{"devices --json x", "only - is possible"},
		{"send bw -d sim: somewhere", "simulator inside one process"},
		{"ps --transport udp", "want be, tcp, both or auto"},
		{"ps --transport auto", "give --replicas"},
		{"ps --replicas 9", "--replicas 9: must be 0 to 8"},
		{"ps --keys 5 --max-size 5K", "--keys and --min-size or --max-size contradict each other"},
		{"ps --rebalance-after 1", "--rebalance-after: must be with --replicas"},
		{"ps --rebalance-after 9 --replicas 1", "--rebalance-after 9: must be below -D, 5"},
		{"ps --rebalance-after 1 --kill 1 --replicas 2", "--kill and --rebalance-after contradict each other"},
		{"ps --rebalance-after 1 --replicas 2 -n 5", "give -D"},
		{"ps --rebalance-after 1 --rebalance-shards 4 --replicas 2", "--rebalance-shards 4: must not be --shards"},
		{"ps --shards 2 --replicas 2 a b c d", "4 hosts, and d would have no shard: give 3 at most"},
		{"ps -d sim: -1", "-1 is for a server, and both ends are in this process"},
		{"rpc -d sim: -1", "-1 is for a server, and both ends are in this process"},
		{"rpc -d sim: --transport tcp -1", "-1 is for a server, and both ends are in this process"},
		{"send bw -d sim: -1", "-1 is for a server, and both ends are in this process"},
		{"ps --transport tcp --tclass 4 --local", "--tclass is of an RDMA device"},
		{"rpc --transport tcp -x 3", "--gid-index is of an RDMA device"},
		{"rpc --transport tcp --spin 50us", "--lock-threads and --spin are of ByteExpress"},
		{"rpc lat --outstanding 64", "rpc lat and --outstanding contradict each other"},
		{"ps --rebalance-after 1 --rebalance-shards 2000 --replicas 2", "--rebalance-shards 2000: must be 0 to 1024"},
		{"ps --rebalance-shards 2 --replicas 2", "--rebalance-shards is of --rebalance-after"},
		{"ps --kill 1", "--kill: must be with --replicas 2 or more"},
		{"ps --rebalance-after 1 --replicas 2 --transport tcp", "not for a server"},
		{"ps --keys 32769", "--keys 32769: must be 0 to 32768 by --dim 256"},
		{"ps --kill 5 --replicas 2", "--kill 5: must be below -D, 5"},
		{"ps --kill 1 --replicas 2 a", "end a server there by hand"},
		{"ps --workload mining", "want inference or training"},
		{"ps --shards 0", "--shards 0: must be 1 to"},
		{"ps -n 5 -D 5", "contradict"},
		{"ps --rows 5 --keys-from x", "contradict"},
		{"-D 5 --min-bw 3", "name one"},
		{"--interval 1", "no results before its end"},
		{"send bw -u 0", "--qp-timeout 0: must be 1 to 31"},
		{"doctor --json x", "only - is possible"},
		{"doctor -1", "-1 is for --serve"},
		{"msg bw --window 32K", "--window 32768: must be at least --fragment, 65536"},
		{"msg lat --fragment 1M --node-window 512K", "--node-window 524288: must be at least --fragment, 1048576"},
		{"msg compare --srq 15", "--srq 15: must be at least twice --recv-depth, 8"},
		{"msg bw --srq 128 --recv-depth 65", "--srq 128: must be at least twice --recv-depth, 65"},
		{"msg bw --srq x", `invalid argument "x" for "--srq" flag: want a whole number (`},
		{"msg bw -d sim: --pin -1", "--pin -1: there is no such CPU"},
		{"msg compare -d sim: --pin 1023", "--pin 1023: there is no such CPU"},
		{"msg bw --pin a", `invalid argument "a" for "--pin" flag: want a whole number (`},
		{"doctor --serve a", "contradict"},
		{"doctor -p 0", "--port 0"},
		{"devices a b", `devices: at most one device, got ["a" "b"]`},
	} {
		_, text, two := strings.Cut(tt.want, "\x00")
		if !two {
			text = tt.want
		}
		t.Run(tt.args, func(t *testing.T) {
			bebench(context.Background(), strings.Fields(tt.args)...).want(t, exit.Usage, text)
		})
	}
}

func TestHelpNamesTheCommands(t *testing.T) {
	bebench(context.Background(), "--help").want(t, exit.Done, "devices", "msg", "ps", "write-imm", "atomic")
	bebench(context.Background(), "write", "bw", "--help").want(t, exit.Done, "--tx-depth", "-Q, --cq-mod")
	bebench(context.Background(), "--version").want(t, exit.Done, "bebench version")
}

func TestLocalRuns(t *testing.T) {
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"send bw -n 100", []string{"SEND BW test", "BW average[MB/sec]", "99.9% percentile[usec]", " yes"}},
		{"send lat -n 100", []string{"Latency is half a round trip", "t_typical[usec]", " yes"}},
		{"write bw -n 100 -q 3 --threads 2 -b --report_gbits -s 4K", []string{"BW average[Gb/sec]", " 4096 ", " 600 "}},
		{"write lat -n 50 -s 1M", []string{" 1048576 "}},
		{"write-imm bw -n 100 -l 4 -Q 8", []string{"WRITE-IMM BW test"}},
		{"read lat -n 100 -H", []string{"from posting the request", "count"}},
		{"atomic bw -n 100", []string{"ATOMIC BW test", " 8 "}},
		{"atomic lat -n 100 -e", []string{"ATOMIC Latency"}},
		{"send bw -a -n 2", []string{" 8388608 "}},
		{"msg bw -n 100 --sockets 2", []string{"ByteExpress BW test", " 200 ", " yes"}},
		{"msg lat -n 100", []string{"ByteExpress Latency test", " yes"}},
		{"msg bw -n 20 -b -s 1 --verify=false", []string{" 40 ", " -"}},
		{"msg bw -n 50 -s 64 --pack 0 --node-window 0", []string{"1 worker, nothing packed"}},
		{"msg bw -n 50 -s 64 --pack 1K -b -v", []string{"eager messages a SEND"}},
		{"msg bw -n 50 --sockets 3 --weights 1,2 --unordered -v", []string{"unordered, weights [1 2]", "requests a doorbell", "copies 0", "engine of QP"}},
		{"msg bw -n 50 -s 100K --get --workers 2 --sockets 4 --window-target 1ms --node-window 64K --lock-threads --spin 10us -v",
			[]string{"2 workers, locked threads, spin 10µs, adaptive window, target 1ms, node window 65536, get mode", "get_messages 200"}},
		{"msg compare --rounds 1 -D 0.02 --sizes 64,100K --sockets 1,3 --verify", []string{"be/it", " 102400     3       tcp "}},
		{"ps -n 50 --dim 16 --rows 100 --max-size 64K", []string{"fetch be", "fetch tcp", "be/tcp", "a simulated NIC", "verified bit by bit"}},
		{"ps -n 20 --workload training --rows 100 --transport be", []string{"push  be", "doorbells"}},
		{"ps -n 20 --transport tcp --local --rows 100", []string{"fetch tcp"}},
		{"ps -n 20 --transport auto --replicas 2 --shards 2 --rows 100 --keys 3", []string{"2 shards of 2 replicas", "Requests of 3072 to 3072 bytes", "fetch auto"}},
		{"ps -D 0.4 --kill 0.1 --replicas 2 --shards 2 --rows 100 --keys 3 --workload training --transport tcp --local", []string{"push over tcp, 99% of the requests", "the end of a server", "and 0 requests failed", "verified"}},
		{"ps -D 0.4 --rebalance-after 0.1 --replicas 2 --shards 2 --rows 100 --keys 3 --outstanding 4 --workload training --transport both", []string{"push over be, 99% of the requests", "push over tcp, 99% of the requests", "and 0 requests failed", "verified"}},
		{"devices --why", []string{"default:"}},
		{"devices --json -", []string{"bebench-devices/1"}},
		{"doctor", []string{"loop sim:", "0 errors"}},
		{"doctor --json -", []string{"bebench-doctor/1", `"severity": "ok"`}},
		{"devices sim:", []string{"completions a queue", "rank 1: RoCE v2, IPv4 address"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			bebench(context.Background(), onSim(tt.args)...).want(t, exit.Done, tt.want...)
		})
	}
}

func TestKeysFromText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("to be or not to be\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bebench(context.Background(), "ps", "-d", "sim:", "-n", "20", "--keys-from", path).want(t, exit.Done, "6 words of "+path+", 4 distinct", "fetch be")
	bebench(context.Background(), "ps", "-d", "sim:", "-n", "20", "--keys-from", path+"x").want(t, exit.Failed, "--keys-from", path+"x")
}

func TestMainJob(t *testing.T) {
	r := bebench(context.Background(), "-D", "0.1")
	r.want(t, exit.Done, "fetch be", "fetch tcp", "push  be", "push  tcp", "fetch  be/tcp: mean", "push   be/tcp", "simulated NIC", "verified bit by bit")
	if strings.Contains(r.out, " NO") {
		t.Errorf("wrong values:\n%s", r.out)
	}
}

// decode reads a document and refuses keys that the schema does not have.
func decode(t *testing.T, b []byte) *report.Document {
	t.Helper()
	var d report.Document
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatalf("%v in:\n%s", err, b)
	}
	if d.Schema != "bebench/1" || d.Host.OS == "" || d.Host.CPUs == 0 || d.Rows == nil || len(d.Args) == 0 {
		t.Errorf("document: %+v", d)
	}
	if _, err := time.Parse(time.RFC3339, d.Started); err != nil {
		t.Error(err)
	}
	return &d
}

func TestJSON(t *testing.T) {
	for args, check := range map[string]func(*report.Document) bool{
		"write bw -n 100 -s 4096": func(d *report.Document) bool {
			r := d.Rows[0]
			return d.Command == "write bw" && d.Device.Name == "sim:" && d.Device.MTUBytes == 4096 && r.Name == "write" && r.SizeBytes == 4096 && r.Ops == 100 &&
				*r.BytesPerS > 0 && *r.PeakGbitPerS > 0 && r.LatencyUS.P99 > 0 && *r.Verified && r.Op == "" && d.Args["verify"] == true && d.Args["size"] == 4096.0
		},
		"send lat -n 100": func(d *report.Document) bool {
			r := d.Rows[0]
			return r.BytesPerS == nil && r.GbitPerS == nil && r.PeakGbitPerS == nil && r.LatencyUS.Stdev != nil && r.Histogram == nil
		},
		"send bw -n 100 -N": func(d *report.Document) bool {
			return d.Rows[0].LatencyUS == nil && d.Rows[0].PeakGbitPerS == nil && d.Rows[0].GbitPerS != nil
		},
		"send bw -n 10 -H --verify=false": func(d *report.Document) bool {
			return d.Rows[0].Verified == nil && len(d.Rows[0].Histogram) > 0
		},
		"msg bw -n 100": func(d *report.Document) bool {
			r := d.Rows[0]
			_, retransmissions := r.Counters["device_retransmissions"]
			return r.Name == "be" && r.Counters["doorbells"] > 0 && r.Sockets == 1 && *r.CPUNSPerByte >= 0 && retransmissions && r.Fairness == nil &&
				len(r.Engines) == 1 && r.Engines[0].Sockets == 1 && r.Engines[0].Counters["doorbells"] == r.Counters["doorbells"]
		},
		"msg bw -D 0.3 --sockets 4 --weights 1,3": func(d *report.Document) bool {
			_, queues := d.Rows[0].Counters["queue_in_flight"]
			return *d.Rows[0].Fairness > 0 && *d.Rows[0].Fairness <= 1 && queues
		},
		"msg compare --rounds 2 -D 0.02 --sizes 1K --sockets 2": func(d *report.Document) bool {
			var rows, ratios []string
			for _, r := range d.Rows {
				rows = append(rows, fmt.Sprint(r.Op, " ", r.Name, " ", r.SizeBytes, " ", r.Sockets))
			}
			for _, r := range d.Ratios {
				ratios = append(ratios, fmt.Sprint(r.Op, " ", r.Of, "/", r.To))
			}
			return strings.Join(rows, ",") == "bw copy 1024 2,bw be 1024 2,bw tcp 1024 2,lat be 1024 2,lat tcp 1024 2" &&
				strings.Join(ratios, ",") == "bw be/copy,bw be/tcp,lat be/tcp" && *d.Ratios[1].CPU > 0 && *d.Ratios[2].P50 > 0
		},
		"ps -n 20 --rows 100 --workload training": func(d *report.Document) bool {
			return len(d.Rows) == 4 && len(d.Ratios) == 2 && d.Ratios[0].Of == "be" && *d.Ratios[1].Mean > 0 && d.Rows[0].SizeBytes == 0 && d.Rows[0].Op == "fetch" &&
				d.Rows[3].Name == "tcp" && d.Rows[3].Counters == nil && d.Args["iters"] == 20.0 && d.Args["duration"] == nil && d.Args["max-size"] == 49152.0
		},
	} {
		t.Run(args, func(t *testing.T) {
			r := bebench(context.Background(), append(onSim(args), "--json", "-")...)
			r.want(t, exit.Done)
			d := decode(t, []byte(r.out))
			if len(d.Rows) == 0 || d.Device == nil || !check(d) {
				t.Errorf("document:\n%s", r.out)
			}
			if d.Error != "" || d.Interrupted {
				t.Errorf("error %q, interrupted %v", d.Error, d.Interrupted)
			}
		})
	}
}

func TestJSONFileAndStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	r := bebench(context.Background(), "send", "lat", "-d", "sim:", "-n", "20", "--json", path)
	r.want(t, exit.Done, "t_avg[usec]")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := decode(t, b); len(d.Rows) != 1 {
		t.Errorf("%d rows", len(d.Rows))
	}
	var lines []string
	for secs := 0.5; len(lines) < 2 && secs < 30; secs *= 2 { // a busy machine may take long to look for the first time
		r = bebench(context.Background(), "send", "bw", "-d", "sim:", "-D", fmt.Sprint(secs), "--json-stream", "--interval", "0.1")
		r.want(t, exit.Done)
		lines = strings.Split(strings.TrimSpace(r.out), "\n")
	}
	if len(lines) < 2 || !strings.Contains(lines[0], `"interval":true`) || strings.Contains(lines[len(lines)-1], `"interval"`) {
		t.Errorf("stream:\n%s", r.out)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	r = bebench(context.Background(), "send", "lat", "-d", "sim:", "-n", "20", "--json", filepath.Join(path, "x"))
	if r.want(t, exit.Failed, "JSON result"); r.out != "" {
		t.Errorf("measured before it was seen that the file cannot be written:\n%s", r.out)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.part"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestFullDiskFails(t *testing.T) {
	for _, args := range []string{"--help", "devices", "devices --json -", "send lat -n 20", "send lat -n 20 --json -", "send bw -n 20 --json-stream"} {
		var errout bytes.Buffer
		line := strings.Fields(args)
		if line[0] == "send" {
			line = onSim(args)
		}
		if code := run(context.Background(), line, fullDisk{}, &errout); code != exit.Failed || !strings.Contains(errout.String(), "no space left") {
			t.Errorf("%s: exit status %d, %s", args, code, &errout)
		}
	}
}

func TestThresholds(t *testing.T) {
	for args, want := range map[string]int{
		"send lat -n 50 --max-mean 1e-6":                            exit.Threshold,
		"send lat -n 50 --max-p99 1e-6":                             exit.Threshold,
		"send lat -n 50 --max-p99 1e9 --max-mean 1e9":               exit.Done,
		"send bw -n 50 --min-bw 1e9":                                exit.Threshold,
		"send bw -n 50 --min-msgrate 1e9":                           exit.Threshold,
		"send bw -n 50 --min-bw 1e-6 --min-msgrate 1e-9":            exit.Done,
		"ps -n 10 --rows 50 --max-mean 1e-6":                        exit.Threshold,
		"ps -n 10 --rows 50 --max-mean 1e9":                         exit.Done,
		"ps -n 10 --rows 50 --transport tcp --local --max-p99 1e-6": exit.Threshold,
	} {
		r := bebench(context.Background(), onSim(args)...)
		if r.code != want {
			t.Errorf("%s: exit status %d, want %d\n%s", args, r.code, want, r.errout)
		}
	}
}

func TestUnknownDevice(t *testing.T) {
	for _, args := range []string{"send bw -d mlx9_9", "msg lat -d mlx9_9", "ps -d mlx9_9"} {
		bebench(context.Background(), strings.Fields(args)...).want(t, exit.Failed, "mlx9_9", "sim:")
	}
}

// TestRegistrationRefused stands for a memlock limit that is too small.
func TestRegistrationRefused(t *testing.T) {
	dev, err := provider.Open("sim:refusing")
	if err != nil {
		t.Fatal(err)
	}
	dev.(*sim.Device).RefuseRegistrations(-1)
	defer dev.(*sim.Device).RefuseRegistrations(0)
	for _, args := range []string{"send bw -n 10 -d sim:refusing", "msg lat -n 10 -d sim:refusing", "ps -n 10 --rows 50 -d sim:refusing"} {
		bebench(context.Background(), strings.Fields(args)...).want(t, exit.Failed, "sim:refusing", "register memory")
	}
}

func TestInterrupt(t *testing.T) {
	for _, args := range []string{"write lat -D 60", "send bw -D 60", "msg bw -D 60", "ps -D 60 --rows 100", "-D 60"} {
		t.Run(args, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(700*time.Millisecond, cancel)
			r := bebench(ctx, append(onSim(args), "--json", "-")...)
			r.want(t, exit.Failed, "interrupted")
			d := decode(t, []byte(r.out))
			// On a slow machine the interrupt may come before a row, or its first operation.
			if !d.Interrupted || len(d.Rows) > 0 && !d.Rows[0].Interrupted || !strings.Contains(d.Error, "interrupted") {
				t.Errorf("document:\n%s", r.out)
			}
		})
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	r := bebench(context.Background(), "send", "bw", "-d", "sim:", "-D", "0.5")
	if r.want(t, exit.Done); r.errout != "" {
		t.Errorf("on standard error: %q", r.errout)
	}
	r = bebench(context.Background(), "send", "bw", "-d", "sim:", "-D", "0.5", "--progress", "always")
	if r.want(t, exit.Done); r.errout == "" {
		t.Error("no progress with --progress always")
	}
}

// lockedBuffer may be written to by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
