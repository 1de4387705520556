// Package grpc runs gRPC-Go over ByteExpress, and measures it beside gRPC-Go over
// TCP and beside plain messages. It is in a module of its own, so that the project
// does not depend on gRPC:
//
//	cd compare && go test ./grpc
//	cd compare && go test ./grpc -run='^$' -bench=.
//
// Its program grpcmsg measures messages over streams of gRPC-Go for
// "bebench msg compare --also"; "make compare-msg" runs both.
package grpc
