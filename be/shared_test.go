package be_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// hub is a node with many peers, each a node of its own.
type hub struct {
	fabric   *sim.Fabric
	node     *be.Node
	listener *be.Listener
	devs     []*sim.Device
	peers    []*be.Node
}

func newHub(t testing.TB, peers int, cfg, peer be.Config) *hub {
	t.Helper()
	h := &hub{fabric: sim.NewFabric(sim.Config{})}
	_, h.node = newNode(t, h.fabric, "hub", cfg)
	var err error
	if h.listener, err = h.node.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	for i := range peers {
		dev, n := newNode(t, h.fabric, fmt.Sprintf("peer%d", i), peer)
		h.devs, h.peers = append(h.devs, dev), append(h.peers, n)
	}
	return h
}

// dial opens a socket from peer i.
func (h *hub) dial(t testing.TB, i int) (server, client *be.Socket) {
	t.Helper()
	p := pair{nodes: [2]*be.Node{h.node, h.peers[i]}, listener: h.listener}
	return p.connect(t, "hub")
}

// burst has each client send messages of mixed sizes, all at the same time, and each
// server too, and checks them. In the end no message is under way.
func burst(t testing.TB, servers, clients []*be.Socket, each int) {
	t.Helper()
	ctx := limit(t)
	var wg sync.WaitGroup
	for i := range clients {
		for _, way := range [][2]*be.Socket{{clients[i], servers[i]}, {servers[i], clients[i]}} {
			from, to := way[0], way[1]
			size := func(k int) int { return []int{64, 0, 8192, 100, 8193, 1, 70000}[k%7] }
			wg.Go(func() {
				for k := range each {
					b := alloc(t, from.Node(), size(k), byte(i+k))
					wg.Add(1)
					if err := from.Post(b, func(err error) {
						if err != nil {
							t.Errorf("post: %v", err)
						} else {
							from.Node().Free(b)
						}
						wg.Done()
					}); err != nil {
						t.Error(err)
						wg.Done()
					}
				}
			})
			wg.Go(func() {
				for k := range each {
					b, err := to.Recv(ctx)
					if err != nil {
						t.Errorf("receive: %v", err)
						return
					}
					check(t, b, size(k), byte(i+k))
					to.Node().Free(b)
				}
			})
		}
	}
	wg.Wait()
}

func noRNR(t testing.TB, nodes ...*be.Node) {
	t.Helper()
	for _, n := range nodes {
		if st := n.Stats(); st.RNR != 0 || st.Failures != 0 || st.ProtocolErrors != 0 {
			t.Errorf("%s: %d messages found no receive, %d failed, %d protocol errors", n.Device(), st.RNR, st.Failures, st.ProtocolErrors)
		}
	}
}

// TestSharedReceives: many peers send to one node whose engines share their receives,
// with hardly more than what each is promised. Nothing finds the queue empty, and
// when peers rest, what was lent comes back.
func TestSharedReceives(t *testing.T) {
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("both=%v", both), func(t *testing.T) {
			const peers = 6
			cfg := be.Config{SharedReceives: 64, RecvDepth: 4, Backlog: 1024}
			peer := be.Config{Backlog: 1024}
			if both {
				peer = cfg
			}
			h := newHub(t, peers, cfg, peer)
			var servers, clients []*be.Socket
			for i := range peers {
				s, c := h.dial(t, i)
				servers, clients = append(servers, s), append(clients, c)
			}
			burst(t, servers, clients, 210)
			burst(t, servers[:1], clients[:1], 700)
			eventually(t, "peers give back what was lent", func() bool {
				st := h.node.Stats()
				return st.Recalls > 0 && st.Returned > 0
			})
			burst(t, servers, clients, 210)
			noRNR(t, append(h.peers, h.node)...)
		})
	}
}

// TestSharedReceivesAreUsedUp: an engine too many is refused, by an error that names
// the receives; when one has left there is room again.
func TestSharedReceivesAreUsedUp(t *testing.T) {
	h := newHub(t, 3, be.Config{SharedReceives: 11, RecvDepth: 5}, be.Config{})
	for i := range 2 {
		s, c := h.dial(t, i)
		burst(t, []*be.Socket{s}, []*be.Socket{c}, 50)
	}
	if _, err := h.peers[2].Dial(limit(t), h.listener.Addr().String(), "one too many"); !errors.Is(err, be.ErrRefused) {
		t.Errorf("one engine too many: %v", err)
	}
	if err := h.peers[0].Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room for another engine", func() bool {
		s, err := h.peers[2].Dial(limit(t), h.listener.Addr().String(), "hub")
		if err != nil {
			return false
		}
		server, err := h.listener.Accept(limit(t))
		if err != nil {
			t.Fatal(err)
		}
		burst(t, []*be.Socket{server}, []*be.Socket{s}, 50)
		return true
	})
	noRNR(t, h.node)
}

// TestSharedReceivesOutliveTheirPeers: peers that vanish in the middle of sending
// leave the receives to the others, again and again.
func TestSharedReceivesOutliveTheirPeers(t *testing.T) {
	const peers = 5
	h := newHub(t, peers, be.Config{SharedReceives: 32, RecvDepth: 4}, be.Config{})
	keepServer, keep := h.dial(t, 0)
	for i := 1; i < peers; i++ {
		s, c := h.dial(t, i)
		var up, down traffic
		up.start(t, h.peers[i], c)
		down.start(t, h.node, s)
		drained := make(chan struct{}, 2)
		for n, k := range map[*be.Node]*be.Socket{h.node: s, h.peers[i]: c} {
			go func() { sink(n, k); drained <- struct{}{} }()
		}
		eventually(t, "messages flow", func() bool { return up.done.Load() > 200 && down.done.Load() > 200 })
		h.devs[i].Remove()
		for range 2 {
			<-drained
		}
		up.wg.Wait()
		down.wg.Wait()
		burst(t, []*be.Socket{keepServer}, []*be.Socket{keep}, 100)
	}
	if st := h.node.Stats(); st.ProtocolErrors != 0 {
		t.Errorf("%d protocol errors", st.ProtocolErrors)
	}
}

// TestSharedReceivesOutliveMutePeers: peers that come and vanish without a message, many
// more than there are receives, leave room for one that stays.
func TestSharedReceivesOutliveMutePeers(t *testing.T) {
	h := newHub(t, 1, be.Config{SharedReceives: 16, RecvDepth: 4}, be.Config{})
	for i := range 40 {
		p := newRawPeer(t, h.fabric, fmt.Sprintf("mute%d", i), h.listener.Addr().String())
		p.tcp.Close()
		eventually(t, "the engine is gone", func() bool { return h.node.Stats().Engines == 0 })
	}
	s, c := h.dial(t, 0)
	burst(t, []*be.Socket{s}, []*be.Socket{c}, 100)
}

func TestSharedReceivesConfig(t *testing.T) {
	for _, cfg := range []be.Config{{SharedReceives: 7, RecvDepth: 4}, {SharedReceives: -1}, {SharedReceives: 64, CQEntries: 64}, {SharedReceives: 1 << 21}} {
		f := sim.NewFabric(sim.Config{})
		dev, err := f.NewDevice("one", sim.DeviceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := dev.Open()
		if err != nil {
			t.Fatal(err)
		}
		var ce *be.ConfigError
		if _, err := be.NewNode(ctx, cfg); !errors.As(err, &ce) && !errors.Is(err, verbs.ErrLimit) {
			t.Errorf("%+v: %v", cfg, err)
		}
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDeviceSharedReceives has both nodes share their receives, on the device that
// tests may use.
func TestDeviceSharedReceives(t *testing.T) {
	p := newDevicePair(t, be.Config{SharedReceives: 32, RecvDepth: 4, Workers: 2})
	var servers, clients []*be.Socket
	for i := range 8 {
		s, c := p.connect(t, fmt.Sprint(i))
		servers, clients = append(servers, s), append(clients, c)
	}
	for range 3 {
		burst(t, servers, clients, 105)
		time.Sleep(200 * time.Millisecond) // what was lent comes back
	}
	noRNR(t, p.nodes[:]...)
}
