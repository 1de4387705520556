// Command kitexrpc measures unary echo calls of kitex, with thrift's binary protocol, over TCP
// loopback, for "bebench rpc --also kitex=kitexrpc": a single caller over a connection of the
// pool, several over the multiplexed one, which is the faster of the two for each. It is
// linked with -ldflags=-checklinkname=0, since a dependency of kitex reaches into
// encoding/json.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/cloudwego/gopkg/protocol/thrift"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/pkg/serviceinfo"
	"github.com/cloudwego/kitex/server"

	"github.com/byteexpress/byteexpress/compare/calls"
)

func main() {
	klog.SetLevel(klog.LevelFatal)
	if err := calls.Main(os.Args[1:], os.Stdout, start); err != nil {
		fmt.Fprintln(os.Stderr, "kitexrpc:", err)
		os.Exit(1)
	}
}

// message is a thrift struct with one binary field, as kitex's generator writes it:
// arguments have number 1, results 0.
type message struct {
	field int16
	data  []byte
}

func (m *message) BLength() int {
	return thrift.Binary.FieldBeginLength() + thrift.Binary.BinaryLengthNocopy(m.data) + thrift.Binary.FieldStopLength()
}

func (m *message) FastWriteNocopy(b []byte, w thrift.NocopyWriter) int {
	n := thrift.Binary.WriteFieldBegin(b, thrift.STRING, m.field)
	n += thrift.Binary.WriteBinaryNocopy(b[n:], w, m.data)
	return n + thrift.Binary.WriteFieldStop(b[n:])
}

func (m *message) FastRead(b []byte) (n int, err error) {
	for {
		kind, field, l, err := thrift.Binary.ReadFieldBegin(b[n:])
		if n += l; err != nil || kind == thrift.STOP {
			return n, err
		}
		if field == m.field && kind == thrift.STRING {
			m.data, l, err = thrift.Binary.ReadBinary(b[n:])
		} else {
			l, err = thrift.Binary.Skip(b[n:], kind)
		}
		if n += l; err != nil {
			return n, err
		}
	}
}

func service() *serviceinfo.ServiceInfo {
	handler := func(_ context.Context, _, args, result any) error {
		result.(*message).data = args.(*message).data
		return nil
	}
	method := serviceinfo.NewMethodInfo(handler, func() any { return &message{field: 1} }, func() any { return &message{} }, false)
	return &serviceinfo.ServiceInfo{
		ServiceName: "echo", Methods: map[string]serviceinfo.MethodInfo{"Echo": method}, PayloadCodec: serviceinfo.Thrift,
		Extra: map[string]any{"PackageName": "echo"},
	}
}

func start(callers int) (caller func() calls.Echo, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	addr := l.Addr()
	if err := l.Close(); err != nil { // kitex listens by itself
		return nil, nil, err
	}
	serverOptions := []server.Option{server.WithServiceAddr(addr), server.WithExitWaitTime(time.Millisecond)}
	options := []client.Option{client.WithDestService("echo"), client.WithHostPorts(addr.String()), client.WithRPCTimeout(time.Minute)}
	if callers > 1 {
		serverOptions = append(serverOptions, server.WithMuxTransport())
		options = append(options, client.WithMuxConnection(1))
	} else {
		options = append(options, client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: 1, MaxIdleTimeout: time.Minute}))
	}
	s := server.NewServer(serverOptions...)
	if err := s.RegisterService(service(), &struct{}{}); err != nil {
		return nil, nil, err
	}
	go s.Run()
	c, err := client.NewClient(service(), options...)
	if err != nil {
		return nil, nil, err
	}
	if err := ready(c); err != nil {
		return nil, nil, err
	}
	return func() calls.Echo {
		return func(request []byte) ([]byte, error) {
			response := message{}
			err := c.Call(context.Background(), "Echo", &message{field: 1, data: request}, &response)
			return response.data, err
		}
	}, func() { s.Stop() }, nil
}

// ready waits until the server listens.
func ready(c client.Client) (err error) {
	for range 100 {
		if err = c.Call(context.Background(), "Echo", &message{field: 1}, &message{}); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
