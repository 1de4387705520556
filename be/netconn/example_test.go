package netconn_test

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/be/netconn"
	"github.com/byteexpress/byteexpress/sim"
)

// An HTTP server and a client of it, each on a simulated device.
func Example() {
	var nodes [2]*be.Node
	for i := range nodes {
		dev, err := sim.Open("sim:")
		if err != nil {
			log.Fatal(err)
		}
		rdma, err := dev.Open()
		if err != nil {
			log.Fatal(err)
		}
		defer rdma.Close()
		if nodes[i], err = be.NewNode(rdma, be.Config{}); err != nil {
			log.Fatal(err)
		}
		defer nodes[i].Close()
	}

	l, err := netconn.Listen(nodes[0], "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s: %d bytes", r.Method, r.URL.Path, len(body))
	})}
	go server.Serve(l)
	defer server.Close()

	transport := &http.Transport{DialContext: netconn.Dialer{Node: nodes[1], Service: "http"}.DialContext}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	body := io.LimitReader(zeros{}, 1<<20)
	answer, err := client.Post("http://"+l.Addr().String()+"/upload", "application/octet-stream", body)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Status, string(text))
	// Output: 200 OK POST /upload: 1048576 bytes
}

// zeros is a reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
