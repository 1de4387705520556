//go:build linux

package uverbs

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

func event(handle uint64) []byte { return binary.NativeEndian.AppendUint64(nil, handle) }

func TestCompChannel(t *testing.T) {
	k := newFake(t)
	c := k.open()
	ch, err := c.CreateCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	kernel := k.events[len(k.events)-1]
	bg := context.Background()

	kernel.Write(event(42))
	if h, woken, err := ch.Wait(bg); h != 42 || woken || err != nil {
		t.Errorf("event %d, %v, %v", h, woken, err)
	}
	ch.Wake() // before
	if _, woken, err := ch.Wait(bg); !woken || err != nil {
		t.Errorf("wake before the wait: %v, %v", woken, err)
	}
	for range 500 { // during
		done := make(chan error, 1)
		go func() {
			_, woken, err := ch.Wait(bg)
			if !woken && err == nil {
				err = errors.New("an event that nobody sent")
			}
			done <- err
		}()
		ch.Wake()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { _, _, err := ch.Wait(ctx); done <- err }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	kernel.Write(event(43))
	if h, woken, err := ch.Wait(bg); h != 43 || woken || err != nil {
		t.Errorf("event after a cancel: %d, %v, %v", h, woken, err)
	}
	kernel.Write([]byte{1, 2, 3})
	if _, _, err := ch.Wait(bg); err == nil {
		t.Error("an event of 3 bytes was taken")
	}
	go func() { _, _, err := ch.Wait(bg); done <- err }()
	ch.Close()
	if err := <-done; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestAsyncEvents(t *testing.T) {
	k := newFake(t)
	c := k.open()
	kernel := k.events[0]
	b := make([]byte, asyncEventSize)
	asyncEventElement.Put(b, 7)
	asyncEventEventType.Put(b, uint32(verbs.EventQPAccessError))
	kernel.Write(b)
	e, err := c.NextAsync(context.Background())
	if err != nil || e != (AsyncEvent{7, verbs.EventQPAccessError}) {
		t.Errorf("event %+v, %v", e, err)
	}
	kernel.Close() // what a descriptor does that has no more to give
	if _, err := c.NextAsync(context.Background()); err == nil {
		t.Error("no error at the end")
	}
}

// Closing a context ends the wait for its events and every request, and whoever
// comes late hears that it is closed. Nobody reads another's command page.
func TestCloseWhileBusy(t *testing.T) {
	for range 20 {
		k := newFake(t)
		sys := k.system()
		c, err := sys.Open(fakeDevice, nil)
		if err != nil {
			t.Fatal(err)
		}
		sys.Ioctl = func(_ int, page []byte) syscall.Errno { // the fake is not for several goroutines
			if _, err := Decode(page); err != nil {
				t.Error(err)
			}
			return 0
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := c.NextAsync(context.Background()); !errors.Is(err, verbs.ErrClosed) {
				t.Errorf("event: %v", err)
			}
		})
		for _, do := range []func() error{
			func() error { _, err := c.AllocPD(nil); return err },
			func() error { _, _, err := c.AllocMW(1); return err },
			func() error { return c.DeregMR(1) },
			func() error { _, err := c.QueryPort(1); return err },
		} {
			all.Go(func() {
				var err error
				for err == nil {
					err = do()
				}
				if !errors.Is(err, verbs.ErrClosed) {
					t.Errorf("request: %v", err)
				}
			})
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}
