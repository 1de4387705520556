//go:build linux

package rdmacm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
)

// rping's protocol (rdma-core, librdmacm/examples/rping.c). Every SEND is a struct of
// 16 bytes: address, rkey and length of a buffer, big-endian. In each round the client
// tells where its ping is, the server READs it and sends a go-ahead (whose content
// means nothing), the client tells where the pong goes, the server WRITEs the ping
// there and sends a second go-ahead.
const (
	rping      = "rping"
	infoSize   = 16
	rpingPort  = 7351
	rpingCount = 20
)

// Where things lie in a side's memory.
const (
	infoIn  = 0
	infoOut = 64
	pingOff = 4096
	pongOff = 128 << 10
	sideMem = 256 << 10
)

func putInfo(b []byte, r mr.Region, off, size int) {
	binary.BigEndian.PutUint64(b, r.Addr+uint64(off))
	binary.BigEndian.PutUint32(b[8:], uint32(r.RKey))
	binary.BigEndian.PutUint32(b[12:], uint32(size))
}

// text is the ping of a round: a title, then letters, and a zero byte at the end.
func text(b []byte, round int) {
	n := copy(b, fmt.Sprintf("rdma-ping-%d: ", round))
	for i := range b[n:] {
		b[n+i] = byte('A' + (round+i)%58)
	}
	b[len(b)-1] = 0
}

// sendInfo sends the 16 bytes and waits until they are out.
func (s *side) sendInfo(ctx context.Context) error {
	if err := s.post(qp.SendWR{Opcode: qp.Send, SGEs: s.sge(infoOut, infoSize)}); err != nil {
		return err
	}
	_, err := s.want(ctx, false)
	return err
}

// recvInfo waits for the peer's 16 bytes and posts the next receive.
func (s *side) recvInfo(ctx context.Context) (addr uint64, key mr.RKey, size int, err error) {
	c, err := s.want(ctx, true)
	if err == nil && c.ByteLen != infoSize {
		err = fmt.Errorf("a message of %d bytes", c.ByteLen)
	}
	if err != nil {
		return 0, 0, 0, err
	}
	b := s.mem[infoIn:]
	addr, key, size = binary.BigEndian.Uint64(b), mr.RKey(binary.BigEndian.Uint32(b[8:])), int(binary.BigEndian.Uint32(b[12:]))
	return addr, key, size, s.recv(s.qp, infoIn, infoSize)
}

// rpingClient plays the client's rounds.
func (s *side) rpingClient(ctx context.Context, size int) error {
	ping, pong := s.mem[pingOff:][:size], s.mem[pongOff:][:size]
	for round := range rpingCount {
		text(ping, round)
		clear(pong)
		for _, off := range []int{pingOff, pongOff} {
			putInfo(s.mem[infoOut:], s.mr, off, size)
			if err := s.sendInfo(ctx); err != nil {
				return err
			}
			if _, _, _, err := s.recvInfo(ctx); err != nil {
				return err
			}
		}
		if !bytes.Equal(ping, pong) {
			return fmt.Errorf("round %d: the pong %.40q is not the ping %.40q", round, pong, ping)
		}
	}
	return nil
}

// rpingServer plays the server's rounds.
func (s *side) rpingServer(ctx context.Context, size int) error {
	for round := range rpingCount {
		for _, op := range []qp.Opcode{qp.Read, qp.Write} {
			addr, key, n, err := s.recvInfo(ctx)
			if err == nil && n != size {
				err = fmt.Errorf("the peer's buffer has %d bytes, want %d", n, size)
			}
			if err == nil {
				err = s.post(qp.SendWR{Opcode: op, RemoteAddr: addr, RKey: key, SGEs: s.sge(pingOff, n)})
			}
			if err == nil {
				_, err = s.want(ctx, false)
			}
			if err == nil {
				err = s.sendInfo(ctx)
			}
			if err != nil {
				return fmt.Errorf("round %d: %v: %w", round, op, err)
			}
		}
		if want := fmt.Sprintf("rdma-ping-%d: ", round); !bytes.HasPrefix(s.mem[pingOff:], []byte(want)) || s.mem[pingOff+size-1] != 0 {
			return fmt.Errorf("round %d: the ping is %.40q", round, s.mem[pingOff:])
		}
	}
	return nil
}

func (s *side) rpingOptions() rdmacm.Options {
	o := s.options("")
	o.RawPrivate = true
	o.MaxReads, o.MaxDestReads = 1, 1
	o.Ready = func(q qp.QP) error { return s.recv(q, infoIn, infoSize) }
	return o
}

func TestRping(t *testing.T) {
	needPeer(t, rping)
	port := rpingPort
	for _, size := range []int{64, 4097, 65535} {
		for _, flags := range [][]string{nil, {"-q"}} { // the peer's library moves the queue pair, or the program itself
			args := append([]string{"-C", strconv.Itoa(rpingCount), "-S", strconv.Itoa(size)}, flags...)
			port++ // a port is in use for a while after its connection
			addr := localAddr(t, uint16(port))
			t.Run(fmt.Sprintf("peer=server/size=%d%v", size, flags), func(t *testing.T) {
				noLeaks(t)
				ctx := patient(t)
				s := newSide(t, sideMem)
				wait := startPeer(ctx, t, rping, append(args, "-s", "-a", addr.Addr().String(), "-p", strconv.Itoa(port))...)
				c := dialUntil(ctx, t, addr, s.rpingOptions())
				must(t, s.rpingClient(ctx, size))
				must(t, c.Close())
				wait()
			})
			t.Run(fmt.Sprintf("peer=client/size=%d%v", size, flags), func(t *testing.T) {
				noLeaks(t)
				ctx := patient(t)
				s := newSide(t, sideMem)
				l, err := rdmacm.Listen(localAddr(t, 0))
				must(t, err)
				defer l.Close()
				wait := startPeer(ctx, t, rping, append(args, "-c", "-V", "-a", addr.Addr().String(), "-p", strconv.Itoa(int(l.Addr().Port())))...)
				c, err := l.Accept(ctx, s.rpingOptions())
				must(t, err)
				must(t, s.rpingServer(ctx, size))
				must(t, c.Wait(ctx))
				must(t, c.Close())
				wait()
			})
		}
	}
}

func needPeer(t *testing.T, name string) {
	t.Helper()
	testdev.Name(t)
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed (Debian: apt-get install rdmacm-utils)", name)
	}
}

// startPeer runs a peer; what it gives waits for the peer's end, which must be a good
// one.
func startPeer(ctx context.Context, t *testing.T, name string, args ...string) (wait func()) {
	t.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	waited := false
	t.Cleanup(func() {
		if !waited {
			cmd.Process.Kill()
			t.Logf("%s: %v: %s", cmd, <-ended, &out)
		}
	})
	return func() {
		t.Helper()
		waited = true
		if err := <-ended; err != nil {
			t.Errorf("%s: %v: %s", cmd, err, &out)
		}
	}
}

// dialUntil connects as soon as the peer listens.
func dialUntil(ctx context.Context, t *testing.T, addr netip.AddrPort, o rdmacm.Options) *rdmacm.Conn {
	t.Helper()
	for {
		c, err := rdmacm.Dial(ctx, addr, o)
		if err == nil {
			return c
		}
		if !errors.Is(err, rdmacm.ReasonInvalidServiceID) || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
