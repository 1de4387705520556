package mlx5

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// The vectors are what the mlx5 provider of rdma-core stored for the same calls,
// on a little-endian host with rings filled with a known byte.

type u64 uint64

func (u *u64) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseUint(strings.Trim(string(b), `"`), 0, 64)
	*u = u64(v)
	return err
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(b []byte) (err error) {
	*h, err = hex.DecodeString(string(b))
	return err
}

type write struct {
	Off int
	Hex hexBytes
}

type goldenSGE struct {
	Addr   u64
	Length uint32
	LKey   mr.LKey
	Data   *hexBytes
}

type goldenWR struct {
	ID         u64          `json:"wr_id"`
	Opcode     qp.Opcode    `json:"opcode_num"`
	Name       string       `json:"opcode"`
	Flags      qp.SendFlags `json:"send_flags"`
	Imm        hexBytes
	Invalidate mr.RKey `json:"invalidate_rkey"`
	Bind       *struct {
		Window       mr.RKey `json:"mw_rkey"`
		RKey         mr.RKey
		LKey         mr.LKey
		Addr, Length u64
		Access       mr.Access
	}
	RemoteAddr u64 `json:"remote_addr"`
	RKey       mr.RKey
	CompareAdd u64 `json:"compare_add"`
	Swap       u64
	SGE        []goldenSGE
}

type goldenSlot struct {
	Idx    uint32
	ID     u64    `json:"wr_id"`
	Head   uint32 `json:"wqe_head"`
	WRData uint32 `json:"wr_data"`
}

type goldenState struct {
	CurPost uint32 `json:"cur_post"`
	Head    uint32
	Tail    uint32
	Fence   uint8    `json:"fm_cache"`
	Buffer  int      `json:"bf_offset"`
	Record  hexBytes `json:"dbrec"`
	Cons    uint32   `json:"cons_index"`
}

type goldenLine struct {
	ID, Class, Quirk, Note string
	QP                     struct {
		Type     string
		QPN      uint32
		SQBlocks int   `json:"sq_wqe_cnt"`
		RQSlots  int   `json:"rq_wqe_cnt"`
		RQShift  uint  `json:"rq_wqe_shift"`
		MaxGS    int   `json:"max_gs"`
		StateGS  int   `json:"state_max_gs"`
		MaxPost  int   `json:"max_post"`
		Inline   int   `json:"max_inline"`
		Signal   uint8 `json:"sq_signal_bits"`
		Atomics  int   `json:"atomics_enabled"`
	}
	BF struct {
		Size   int `json:"buf_size"`
		Off    int `json:"reg_off"`
		Number int `json:"uuarn"`
		Prefer int `json:"prefer_bf"`
		ShutUp int `json:"shut_up_bf"`
	}
	Pre, Post goldenState
	WR        []goldenWR
	Ret       int
	BadWR     int     `json:"bad_wr"`
	SQWrites  []write `json:"sq_writes"`
	RQWrites  []write `json:"rq_writes"`
	UARWrites []write `json:"uar_writes"`
	Slots     []goldenSlot
	goldenPoll
	goldenSizes
}

// golden gives the lines of a name.
func golden(t testing.TB, name string) (lines []goldenLine) {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the vectors are of a little-endian host")
	}
	GoldenLines(t, name, func(b []byte) {
		var l goldenLine
		if err := json.Unmarshal(b, &l); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		switch l.Quirk {
		case "", "doorbell_from_failed_wqe", "poll_error_discards", "max_inline_underflow":
		default:
			t.Errorf("%s: quirk %q is not known", l.ID, l.Quirk)
		}
		lines = append(lines, l)
	})
	return lines
}

// goldenNames are the files of vectors, but for random ones and compression.
var goldenNames = []string{"send", "recv", "cq", "sizing", "uverbs"}

// GoldenLines gives each line of the files of a name: those of testdata, the random
// ones among them that were made later in the same way, and those of the directory
// that MLX5_VECTORS names, which has no other files of lines.
func GoldenLines(t testing.TB, name string, line func([]byte)) {
	t.Helper()
	pattern := "testdata/" + name + "*.jsonl.gz"
	if name == "uverbs" { // requests to the kernel, which package uverbs replays too
		pattern = "../../uverbs/testdata/mlx5-uverbs.jsonl.gz"
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors of %s: %v", name, err)
	}
	if dir := os.Getenv("MLX5_VECTORS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.jsonl*"))
		if err != nil || len(more) == 0 {
			t.Fatalf("no vectors in %s: %v", dir, err)
		}
		for _, f := range more {
			base, _, _ := strings.Cut(filepath.Base(f), ".")
			switch base = strings.TrimSuffix(base, "-random"); {
			case base == name:
				files = append(files, f)
			case !slices.Contains(goldenNames, base):
				t.Fatalf("%s: nothing replays it; names are %v", f, goldenNames)
			}
		}
	}
	for _, f := range files {
		n := 0
		readLines(t, f, func(b []byte) { n++; line(b) })
		if n == 0 {
			t.Fatalf("%s has no lines", f)
		}
	}
}

// readLines gives each line of a file, which may be compressed.
func readLines(t testing.TB, name string, line func([]byte)) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		if len(s.Bytes()) > 0 {
			line(s.Bytes())
		}
	}
	if s.Err() != nil {
		t.Fatalf("%s: %v", name, s.Err())
	}
}

// request is the line's request in our terms.
func (g *goldenWR) request() qp.SendWR {
	w := qp.SendWR{ID: uint64(g.ID), Opcode: g.Opcode, Flags: g.Flags, RKey: g.RKey, RemoteAddr: uint64(g.RemoteAddr),
		CompareAdd: uint64(g.CompareAdd), Swap: uint64(g.Swap)}
	switch b := g.Bind; {
	case g.Opcode == qp.LocalInv, g.Opcode == qp.SendWithInv:
		w.RKey = g.Invalidate
	case b != nil:
		w.RKey = b.Window
		w.Bind = &qp.Bind{Region: b.LKey, Addr: uint64(b.Addr), Length: uint64(b.Length), Access: b.Access, RKey: b.RKey}
	}
	if g.Imm != nil {
		w.Imm = binary.BigEndian.Uint32(g.Imm)
	}
	for _, s := range g.SGE {
		if s.Data != nil {
			w.Inline = append(w.Inline, *s.Data...)
			if w.Inline == nil {
				w.Inline = []byte{}
			}
		} else {
			w.SGEs = append(w.SGEs, qp.SGE{Addr: uint64(s.Addr), Length: s.Length, LKey: s.LKey})
		}
	}
	return w
}

// mapped gives anonymous memory filled with a byte.
func mapped(t testing.TB, n int, fill byte) *mmio.Mapping {
	t.Helper()
	m, err := mmio.Anonymous(max(n, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	for i := range m.Bytes() {
		m.Bytes()[i] = fill
	}
	return m
}

// apply makes the stores of a line in an image.
func apply(image []byte, writes []write) {
	for _, w := range writes {
		copy(image[w.Off:], w.Hex)
	}
}

// differ reports where two images differ first.
func differ(t *testing.T, id, what string, got, want []byte) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			end := min(i+32, len(want))
			t.Errorf("%s: %s differs at %d (block %d, byte %d): % x, want % x", id, what, i, i/64, i%64, got[i:end], want[i:end])
			return
		}
	}
}
