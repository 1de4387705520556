package ps

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// tensorHost is a server of tensors on a device of its own, at addresses that it keeps.
type tensorHost struct {
	t         *testing.T
	fabric    *sim.Fabric
	name      string
	keep      time.Duration
	rdma, tcp string

	tensors *Tensors
	stop    func()
}

func (h *tensorHost) start() {
	dev, err := h.fabric.NewDevice(h.name, sim.DeviceConfig{})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, err := dev.Open()
	if err != nil {
		h.t.Fatal(err)
	}
	node, err := be.NewNode(ctx, be.Config{})
	if err != nil {
		h.t.Fatal(err)
	}
	if h.tensors, err = NewTensors(TensorsConfig{Node: node, Keep: h.keep}); err != nil {
		h.t.Fatal(err)
	}
	srv := archon.NewServer(archon.ServerConfig{})
	if err := h.tensors.Register(srv); err != nil {
		h.t.Fatal(err)
	}
	var listeners []archon.Listener
	served := make(chan error, 2)
	for at, tr := range map[*string]archon.Transport{&h.rdma: archon.BE{Node: node}, &h.tcp: archon.TCP{}} {
		if *at == "" {
			*at = "127.0.0.1:0"
		}
		var l archon.Listener
		for range 100 { // an old connection may still have the address
			if l, err = tr.Listen(*at); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		*at = l.Addr().String()
		listeners = append(listeners, l)
		go func() { served <- srv.Serve(h.t.Context(), l) }()
	}
	h.stop = func() {
		srv.Close()
		for _, l := range listeners {
			l.Close()
			<-served
		}
		h.tensors.Close()
		if err := errors.Join(node.Close(), ctx.Close()); err != nil {
			h.t.Error(err)
		}
		dev.Remove()
	}
}

func newTensorHost(t *testing.T, keep time.Duration) *tensorHost {
	h := &tensorHost{t: t, fabric: sim.NewFabric(sim.Config{}), name: "sim:server", keep: keep}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

// open gives a reader by a channel over both transports, when calls go over RDMA.
func (h *tensorHost) open() *Tensor {
	t := h.t
	dev, err := h.fabric.NewDevice("sim:client", sim.DeviceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	d := channel.NewDevice(dev.Open, be.Config{AckTimeout: 10, RetryCount: 2})
	ch, err := channel.New(channel.Config{Service: "ps", Resolver: channel.Static(channel.Endpoint{Name: "a", RDMA: h.rdma, TCP: h.tcp}), RDMA: d,
		Recovery: channel.Recovery{PingInterval: 200 * time.Millisecond, PingTimeout: time.Minute, Settle: 100 * time.Millisecond, RedialMax: 100 * time.Millisecond, DialTimeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	w := OpenChannelTensor(ch, "weights")
	t.Cleanup(func() {
		w.Close()
		ch.Close()
		for end := time.Now().Add(time.Minute); d.Close() != nil; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the device cannot be closed")
			}
		}
	})
	h.overRDMA(w)
	return w
}

// overRDMA waits until calls go over RDMA.
func (h *tensorHost) overRDMA(w *Tensor) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if st := w.ch.Stats(); len(st.Replicas) == 1 && st.Replicas[0].Path == core.RDMA {
			return
		}
		if time.Now().After(end) {
			h.t.Fatal("calls do not go over RDMA")
		}
	}
}

func (h *tensorHost) publish(version uint64, data string) {
	if err := h.tensors.Publish("weights", version, []byte(data)); err != nil {
		h.t.Fatal(err)
	}
}

func wantEdition(t *testing.T, w *Tensor, version uint64, data string) {
	t.Helper()
	v, b, err := w.Read(t.Context())
	if err != nil || v != version || string(b) != data {
		t.Fatalf("read version %d, %q, %v; want %d, %q", v, b, err, version, data)
	}
}

// TestTensorServerRestarts: a reader finds a server that was started anew at its address,
// reads what that has, and READs it again when RDMA is back.
func TestTensorServerRestarts(t *testing.T) {
	h := newTensorHost(t, time.Minute)
	h.publish(1, "before")
	w := h.open()
	for range 3 {
		wantEdition(t, w, 1, "before")
	}
	if w.stats.Reads != 3 || w.stats.Places != 1 {
		t.Errorf("%+v", w.stats)
	}
	h.stop()
	h.start()
	h.publish(9, "after")
	wantEdition(t, w, 9, "after")
	h.overRDMA(w)
	before := w.stats.Reads
	wantEdition(t, w, 9, "after")
	if w.stats.Reads != before+1 || w.stats.Places < 2 {
		t.Errorf("after RDMA is back: %+v", w.stats)
	}
}

// TestTensorPlaceIsForgotten: a place that was not looked at for long is asked for again,
// so that no READ comes when the memory is given back. In the control the reader believes
// in the place for ever, and its READ is refused by the server's device: that costs a
// connection, and it reads all the same, by a call.
func TestTensorPlaceIsForgotten(t *testing.T) {
	for _, control := range []bool{false, true} {
		h := newTensorHost(t, 50*time.Millisecond)
		h.publish(1, "first")
		w := h.open()
		wantEdition(t, w, 1, "first")
		h.publish(2, "second")
		for h.tensors.mu.Lock(); len(h.tensors.old) > 0; h.tensors.mu.Lock() {
			h.tensors.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		h.tensors.mu.Unlock()
		if control {
			w.until = time.Now().Add(time.Hour)
		}
		wantEdition(t, w, 2, "second")
		if failed := w.stats.Failed > 0; failed != control || control != (w.stats.Calls == 1) {
			t.Errorf("control %v: %+v", control, w.stats)
		}
	}
}

// TestTornTensor: memory that is something else than one whole edition is never taken for
// one, wherever a byte differs.
func TestTornTensor(t *testing.T) {
	h := newTensorHost(t, time.Minute)
	h.publish(1, "known words")
	w := h.open()
	wantEdition(t, w, 1, "known words")
	p := h.tensors.current["weights"]
	good := bytes.Clone(p.buf)
	for at := range p.buf {
		if at >= tensorState && at < tensorHeader {
			continue
		}
		p.buf[at] ^= 0x10
		invalid := w.stats.Invalid
		if v, b, err := w.Read(t.Context()); !errors.Is(err, archon.DataLoss) || w.stats.Invalid != invalid+1 {
			t.Fatalf("byte %d differs: version %d, %q, %v", at, v, b, err)
		}
		copy(p.buf, good)
	}
	wantEdition(t, w, 1, "known words")
}

func FuzzEdition(f *testing.F) {
	b := make([]byte, tensorHeader, tensorHeader+3)
	h := edition{name: tensorKey("w"), version: 7, length: 3, server: 9, crc: 1}
	h.put(b)
	f.Add(append(bytes.Clone(b), 1, 2, 3))
	f.Add(b)
	f.Add(b[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		var h edition
		if err := h.parse(b, tensorKey("w")); err != nil {
			if !errors.Is(err, archon.DataLoss) {
				t.Fatalf("error %v", err)
			}
			return
		}
		out := bytes.Clone(b)
		h.put(out)
		if clear(b[56:tensorHeader]); !bytes.Equal(out, b) {
			t.Fatalf("% x parses and is written as % x", b, out)
		}
		_ = h.checkData(b[tensorHeader:])
	})
}

func FuzzLocation(f *testing.F) {
	b := make([]byte, placeBytes)
	(&location{version: 3, bytes: 100, keep: time.Second}).put(b)
	f.Add(bytes.Clone(b))
	f.Add(b[:10])
	f.Add(bytes.Repeat([]byte{0xff}, placeBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p location
		if err := p.parse(b); err != nil {
			if !errors.Is(err, archon.Internal) {
				t.Fatalf("error %v", err)
			}
			return
		}
		out := make([]byte, placeBytes)
		if p.put(out); !bytes.Equal(out, b) {
			t.Fatalf("% x parses and is written as % x", b, out)
		}
	})
}
