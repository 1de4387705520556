// Command grpcrpc measures unary echo calls of gRPC-Go over TCP loopback, for "bebench rpc
// --also grpc=grpcrpc". Its codec passes bytes on as they are.
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/byteexpress/byteexpress/compare/calls"
	raw "github.com/byteexpress/byteexpress/compare/grpc"
)

func main() {
	if err := calls.Main(os.Args[1:], os.Stdout, start); err != nil {
		fmt.Fprintln(os.Stderr, "grpcrpc:", err)
		os.Exit(1)
	}
}

var service = grpc.ServiceDesc{
	ServiceName: "echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		b := new([]byte)
		return b, dec(b)
	}}},
}

func start(int) (caller func() calls.Echo, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw.Raw{}), grpc.MaxRecvMsgSize(64<<20))
	server.RegisterService(&service, nil)
	go server.Serve(l)
	c, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw.Raw{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		server.Stop()
		return nil, nil, err
	}
	stop = func() {
		c.Close()
		server.Stop()
	}
	return func() calls.Echo {
		var response []byte // its memory is used again
		return func(request []byte) ([]byte, error) {
			err := c.Invoke(context.Background(), "/echo/Echo", &request, &response)
			return response, err
		}
	}, stop, nil
}
