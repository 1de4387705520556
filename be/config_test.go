package be_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/sim"
)

// TestConfigRefused: what a node cannot work with is refused at once, by the
// field's name, and nothing stays open.
func TestConfigRefused(t *testing.T) {
	index := func(i int) *int { return &i }
	for want, cfg := range map[string]be.Config{
		"Port is 2, must be one": {Port: 2},
		"Port is 256":            {Port: 256},
		"GIDIndex is -1":         {GIDIndex: index(-1)},
		"GIDIndex is 256":        {GIDIndex: index(256)},
		"GIDIndex is 99, must be 0 to 1: port 1 of a has 2 GIDs": {GIDIndex: index(99)},
		"CQEntries is 1, must be at least":                       {CQEntries: 1},
		"CQEntries is 20, must be at least 24":                   {CQEntries: 20, SendDepth: 8, RecvDepth: 16},
		"MTU is 9":                                               {MTU: 9},
		"AckTimeout is 32":                                       {AckTimeout: 32},
		"ServiceLevel is 8":                                      {ServiceLevel: 8},
		"RNRTimer is 32":                                         {RNRTimer: 32},
		"HopLimit is 256":                                        {HopLimit: 256},
		"FlowLabel is 1048576":                                   {FlowLabel: 1 << 20},
		"RetryCount is 8":                                        {RetryCount: 8},
		"Workers is 65":                                          {Workers: 65},
		"Workers is -1":                                          {Workers: -1},
		"Spin is -1":                                             {Spin: -1},
		"PinCPUs is 1024":                                        {PinCPUs: []int{0, 1024}},
		"SendDepth is 1":                                         {SendDepth: 1},
		"RecvDepth is 3":                                         {RecvDepth: 3},
		"MaxMessage is -1":                                       {MaxMessage: -1},
		"RecvQuotaBytes is -1":                                   {RecvQuotaBytes: -1},
		"SocketQuotaBytes is -1":                                 {SocketQuotaBytes: -1},
		"PoolBytes is -1":                                        {PoolBytes: -1},
		"PoolBytes is 4194303":                                   {PoolBytes: 4<<20 - 1},
		"at least FragmentBytes":                                 {WindowBytes: 1000},
		"NodeWindowBytes is 1000":                                {NodeWindowBytes: 1000},
		"WindowTarget is -1":                                     {WindowTarget: -1},
		"HoldTimeout is -1":                                      {HoldTimeout: -1},
		"WindowBytes is 16777216":                                {WindowBytes: 1 << 24, FragmentBytes: 1 << 25},
	} {
		dev, err := sim.NewFabric(sim.Config{}).NewDevice("a", sim.DeviceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		_, err = be.NewNode(ctx, cfg)
		var typed *be.ConfigError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &typed) {
			t.Errorf("error %v, want %q", err, want)
		}
		if err := ctx.Close(); err != nil {
			t.Errorf("%s: left behind: %v", want, err)
		}
	}
	if _, err := be.NewNode(nil, be.Config{}); err == nil || !strings.Contains(err.Error(), "no device context") {
		t.Errorf("without a context: %v", err)
	}
}

// TestAllocErrors: why there is no buffer, in terms of the node's Config.
func TestAllocErrors(t *testing.T) {
	_, n := newNode(t, sim.NewFabric(sim.Config{}), "a", be.Config{PoolBytes: 4 << 20})
	for _, c := range []struct {
		size int
		is   error
		text string
	}{
		{-1, bemalloc.ErrBadAlign, "allocate -1 bytes"},
		{10 << 20, bemalloc.ErrLimit, "be.Config.PoolBytes is 4194304"},
		{math.MaxInt, be.ErrTooLarge, "the limit"},
	} {
		if _, err := n.Alloc(c.size); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "MaxBytes") {
			t.Errorf("%d bytes: %v, want %q", c.size, err, c.text)
		}
	}
	b, err := n.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	n.Free(b[:10])
	n.Free(nil)
	n.Free([]byte("not of the node"))
	if s := n.Stats().Memory; s.BadFrees != 1 || s.DoubleFrees != 0 {
		t.Errorf("%d bad frees, %d double frees, want 1 and 0", s.BadFrees, s.DoubleFrees)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Alloc(1); !errors.Is(err, be.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestFreeFindsDamage: an overrun that Free finds is counted and comes from Close.
func TestFreeFindsDamage(t *testing.T) {
	t.Setenv("BEMALLOC_DEBUG", "guard")
	_, n := newNode(t, sim.NewFabric(sim.Config{}), "a", be.Config{})
	b, err := n.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), len(b))) ^= 0xff
	n.Free(b)
	if got := n.Stats().Memory.Corruptions; got != 1 {
		t.Errorf("%d corruptions counted, want 1", got)
	}
	var damage *bemalloc.CorruptError
	if err := n.Close(); !errors.As(err, &damage) || damage.Offset != 100 {
		t.Errorf("Close: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
