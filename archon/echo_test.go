package archon_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/archon"
)

func TestEchoOfEverySize(t *testing.T) { eachTransport(t, testEchoOfEverySize) }

func testEchoOfEverySize(t *testing.T, tr transport) {
	c := tr.connect(t, archon.EchoServer(t, archon.ServerConfig{}))
	for _, n := range []int{0, 1, 215, 216, 217, 4055, 4056, 4057, 65535, 65536, 1 << 20, 5<<20 + 3} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(i * 7)
		}
		for _, m := range []archon.Method{archon.EchoMethod, archon.WorkerMethod} {
			got, err := archon.CallOn(t, context.Background(), c, m, want)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v of %d bytes: %d bytes, %v", m, n, len(got), err)
			}
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	for _, tr := range []transport{{"tcp", archon.TCP{}, archon.TCP{}}, simTransport(b)} {
		for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
			for _, outstanding := range []int{1, 64} {
				b.Run(fmt.Sprintf("transport=%s/size=%d/outstanding=%d", tr.name, size, outstanding), func(b *testing.B) {
					benchmarkEcho(b, tr.connect(b, archon.EchoServer(b, archon.ServerConfig{})), size, outstanding)
				})
			}
		}
	}
}

// benchmarkEcho keeps a number of echoes outstanding.
func benchmarkEcho(b *testing.B, c *archon.Client, size, outstanding int) {
	b.SetBytes(int64(2 * size))
	b.ReportAllocs()
	free := make(chan *archon.Call, outstanding)
	for range outstanding {
		free <- &archon.Call{Method: archon.EchoMethod}
	}
	done := func(call *archon.Call) {
		if call.Err != nil {
			b.Error(call.Err)
		}
		call.Response.Release()
		free <- call
	}
	for b.Loop() {
		call := <-free
		var err error
		if call.Request, err = c.Alloc(size); err != nil {
			b.Fatal(err)
		}
		if err := c.Go(call, done); err != nil {
			b.Fatal(err)
		}
	}
	for range outstanding {
		<-free
	}
}
