package scenario

import "github.com/byteexpress/byteexpress/sim/des"

// Version is the format of scenario files that this package reads.
const Version = 1

// Scenario is one experiment: who sends what to whom, over which network, with what
// faults, and which variants of the transport are compared. [Parse] makes one of a
// file, and takes the defaults for what the file leaves out.
type Scenario struct {
	Version  int      `json:"version"` // 1
	Name     string   `json:"name"`
	About    string   `json:"about,omitempty"` // one sentence
	Seed     uint64   `json:"seed,omitempty"`
	Duration Span     `json:"duration"`         // of the load, after connections are up
	Warmup   Span     `json:"warmup,omitempty"` // of it, not measured
	Drain    Span     `json:"drain,omitempty"`  // how long what is under way at the end may take; default 20ms
	Sample   Span     `json:"sample,omitempty"` // period of time series; default 10us
	Topology Topology `json:"topology"`
	Switch   Switch   `json:"switch"`
	NIC      NIC      `json:"nic"`
	Engine   Engine   `json:"engine"`
	TCP      TCP      `json:"tcp"`
	Workload Workload `json:"workload"`
	Sweep    *Sweep   `json:"sweep,omitempty"` // runs each variant at several values
	Faults   []Fault  `json:"faults,omitempty"`
	Variants Variants `json:"variants"`
}

// Topology is the network's shape.
type Topology struct {
	// Kind is "single": one switch; "leafspine"; "pair": two hosts, one cable; "dumbbell":
	// two switches with a link between them; "fattree": of switches of K ports, all links
	// alike; "graph": what Trunks and Places say.
	Kind    string  `json:"kind"`
	Hosts   int     `json:"hosts,omitempty"`    // default: as many as the workload needs; of a fat tree K^3/4
	PerLeaf int     `json:"per_leaf,omitempty"` // leafspine: hosts of a leaf; default 32
	Spines  int     `json:"spines,omitempty"`   // leafspine: default 8
	Left    int     `json:"left,omitempty"`     // dumbbell: hosts of the first switch, the first ones; default half
	K       int     `json:"k,omitempty"`        // fattree: ports of a switch, even
	Gbps    int     `json:"gbps,omitempty"`     // of hosts; default 100
	UpGbps  int     `json:"up_gbps,omitempty"`  // between switches; default 4 times that, of a dumbbell or a graph once
	Delay   Span    `json:"delay,omitempty"`    // of a host's cable; default 300ns
	UpDelay Span    `json:"up_delay,omitempty"` // between switches; default 1us
	Trunks  []Trunk `json:"trunks,omitempty"`   // graph: links between switches, which are numbered from 0
	Places  []int   `json:"places,omitempty"`   // graph: the switch of each host
	Links   []Cable `json:"links,omitempty"`    // single, dumbbell, graph: of hosts whose link is another than the others'
}

// Trunk is a link between two switches.
type Trunk struct {
	A     int  `json:"a"`
	B     int  `json:"b"`
	Gbps  int  `json:"gbps,omitempty"`  // default: up_gbps
	Delay Span `json:"delay,omitempty"` // default: up_delay
}

// Cable is a host's link.
type Cable struct {
	Host  int  `json:"host"`
	Gbps  int  `json:"gbps,omitempty"`  // default: the topology's
	Delay Span `json:"delay,omitempty"` // default: the topology's
}

// Switch is what every switch is like. Marking is of the class of RDMA; TCP's own class,
// which is marked for DCTCP alone, has TCPECNBytes.
type Switch struct {
	BufferBytes int     `json:"buffer_bytes,omitempty"`   // default 16 MiB
	EgressBytes int     `json:"egress_bytes,omitempty"`   // bound of one queue; 0: the buffer's
	Lossy       bool    `json:"lossy,omitempty"`          // without PFC: frames are dropped
	PauseShare  float64 `json:"pause_share,omitempty"`    // of the free buffer that frames of one ingress port may hold before its peer is paused; default an eighth, more for faster ports
	PauseBytes  int     `json:"pause_bytes,omitempty"`    // that they may hold, instead of a share
	LossyShare  float64 `json:"lossy_share,omitempty"`    // of the free buffer that one of TCP's queues may hold; default 1
	TCPECNBytes int     `json:"tcp_ecn_bytes,omitempty"`  // K of DCTCP, for each 10 Gb/s; default 30000
	PauseQuanta bool    `json:"pause_quanta,omitempty"`   // pauses end by themselves, and are renewed before
	KminBytes   int     `json:"ecn_kmin_bytes,omitempty"` // of ports at ecn_gbps; of others in proportion
	KmaxBytes   int     `json:"ecn_kmax_bytes,omitempty"` // 0: no marks
	Pmax        float64 `json:"ecn_pmax,omitempty"`
	ECNGbps     int     `json:"ecn_gbps,omitempty"` // default: the rate of hosts' links
	Latency     Span    `json:"latency,omitempty"`  // default 500ns
}

// NIC is what every NIC is like.
type NIC struct {
	MTU     int    `json:"mtu_bytes,omitempty"` // default 4096
	Quantum int    `json:"quantum,omitempty"`   // packets a queue pair sends in its turn; default 1
	DCQCN   string `json:"dcqcn,omitempty"`     // parameters: "paper15" (default), "nic" (ConnectX as it comes), "ns3" (of the HPCC simulator), "off"
	Cache   string `json:"cache,omitempty"`     // of queue pair contexts: "none" (default: all fit), "cx5", "cx6"
	Params  DCQCN  `json:"dcqcn_params"`        // instead of those of dcqcn
	// WQECache is of work requests, but for one that is posted alone, which its doorbell
	// carries. MTTCache is of the addresses of pages (memory translation table): each packet
	// needs those of the pages that it is read from or written to.
	WQECache  Cache `json:"wqe_cache,omitzero"`
	MTTCache  Cache `json:"mtt_cache,omitzero"`
	PageBytes int   `json:"page_bytes,omitempty"` // of registered memory, with mtt_cache; default 4096
}

// DCQCN is parameters of congestion control; see fabric.DCQCN. What is 0 is as
// NIC.DCQCN has it.
type DCQCN struct {
	CNPInterval   Span `json:"cnp_interval,omitempty"`
	CNPGap        Span `json:"cnp_gap,omitempty"` // between any two CNPs of a NIC; default none
	AlphaTimer    Span `json:"alpha_timer,omitempty"`
	IncreaseTimer Span `json:"increase_timer,omitempty"`
	IncreaseBytes int  `json:"increase_bytes,omitempty"`
	FastSteps     int  `json:"fast_steps,omitempty"`
	Gain          int  `json:"gain_1024,omitempty"` // g, in 1024ths
	Rai           int  `json:"rai_mbps,omitempty"`
	Rhai          int  `json:"rhai_mbps,omitempty"`
	Rmin          int  `json:"rmin_mbps,omitempty"`
	DecreaseGap   Span `json:"decrease_gap,omitempty"`
}

// Engine is what every engine of ByteExpress is like; see package cluster. The
// windows are those of the standard variants.
type Engine struct {
	FragmentBytes  int  `json:"fragment_bytes,omitempty"`   // default 8 KiB
	EagerBytes     int  `json:"eager_bytes,omitempty"`      // default 512
	SendDepth      int  `json:"send_depth,omitempty"`       // default 16
	RecvDepth      int  `json:"recv_depth,omitempty"`       // default 8
	WindowBytes    int  `json:"window_bytes,omitempty"`     // of variant "static"; default a fragment
	WindowTarget   Span `json:"window_target,omitempty"`    // of variant "adaptive"; default 5us
	MaxWindowBytes int  `json:"max_window_bytes,omitempty"` // of variant "adaptive"; default 1 MiB
	InboundBytes   int  `json:"inbound_bytes,omitempty"`    // of large messages that come to a host at a time, where windows adapt; default 256 KiB, four fragments or what a link carries in 10 us
	Threads        int  `json:"threads,omitempty"`          // of a host, over which its engines are spread; default 4
	CPUPercent     int  `json:"cpu_percent,omitempty"`      // of the processor time that engines are assumed to take; default 100
	FreeCPU        bool `json:"free_cpu,omitempty"`         // engines take no processor time, but act after step_delay
	StepDelay      Span `json:"step_delay,omitempty"`       // from a completion until the engine acts, with free_cpu; default 500ns
	AckTimeout     int  `json:"ack_timeout,omitempty"`      // of queue pairs, 4.096 us * 2^n; default 14
	RetryCount     int  `json:"retry_count,omitempty"`      // default 7
	Keepalive      Span `json:"keepalive,omitempty"`        // default: never
	PeerTimeout    Span `json:"peer_timeout,omitempty"`     // default: never
}

// TCP is what every TCP is like, where a variant's transport does not say more.
type TCP struct {
	MSS   int `json:"mss_bytes,omitempty"` // payload of a segment; default 1460
	Cores int `json:"cores,omitempty"`     // of a host; default 16
	// Lossless puts segments into the class of RDMA, which PFC protects: it tells what
	// loss does from what processors do.
	Lossless    bool `json:"lossless,omitempty"`
	FreeCPU     bool `json:"free_cpu,omitempty"`       // TCP takes no processor time, and segments are sent one by one
	FirstWindow int  `json:"initial_window,omitempty"` // segments; default 10
	AckEvery    int  `json:"ack_segments,omitempty"`   // segments that are acknowledged at once; default 2
}

// Workload is who sends what to whom. Kinds use the fields that they name.
type Workload struct {
	// Kind is "incast", "training", "inference", "connections" or "flows".
	Kind string `json:"kind"`

	Senders     int   `json:"senders,omitempty"`     // incast: hosts that send to one
	Outstanding int   `json:"outstanding,omitempty"` // incast, connections, flows: messages of a sender at a time, default 2; inference: fetches of a ranker, default 1
	Size        Sizes `json:"size"`                  // of messages; inference: of answers

	// MemoryBytes is the registered memory of a host at random places of which messages
	// lie, each at a multiple of 4096 bytes; those that are one SEND (engine.eager_bytes)
	// do not. It is for nic.mtt_cache; default 0: all lie in the same place.
	MemoryBytes int `json:"memory_bytes,omitempty"`

	Trainers int `json:"trainers,omitempty"` // training
	Rankers  int `json:"rankers,omitempty"`  // inference
	Servers  int `json:"servers,omitempty"`  // training, inference
	Fanout   int `json:"fanout,omitempty"`   // inference: shards of a fetch; default all
	Replicas int `json:"replicas,omitempty"` // inference: servers of a shard; default 1
	// AttemptTimeout and Deadline are of a call to a shard with replicas: when another
	// one is tried beside, and when it fails; default 2ms and 50ms. All else that decides
	// about that is the default of archon's channels.
	AttemptTimeout Span `json:"attempt_timeout,omitempty"`
	Deadline       Span `json:"deadline,omitempty"`
	RequestBytes   int  `json:"request_bytes,omitempty"` // inference: default 256
	Lookup         Span `json:"lookup,omitempty"`        // training, inference: time of a server until its answer
	Think          Span `json:"think,omitempty"`         // inference: mean pause of a ranker between fetches; 0: none

	ReplyBytes   int  `json:"reply_bytes,omitempty"`   // training: a server's answer to a push; default 64
	LoadPercent  int  `json:"load_percent,omitempty"`  // training: of the servers' links; default 40
	Jitter       Span `json:"jitter,omitempty"`        // training: a trainer begins a step that much late at most; flows: so does a flow
	VictimBytes  int  `json:"victim_bytes,omitempty"`  // training: messages of pairs of trainers that have nothing to do with it; default 4000
	VictimPeriod Span `json:"victim_period,omitempty"` // training: mean time between those of one pair; default 20us

	Clients     int    `json:"clients,omitempty"`     // connections: hosts that send to one
	Connections int    `json:"connections,omitempty"` // connections: sockets in all, spread over the clients
	Flows       []Flow `json:"flows,omitempty"`       // flows

	Rate int `json:"rate_per_s,omitempty"` // incast, connections: messages of all sockets if each took no time: they wait at random in between; default: they do not
}

// Flow is messages from one host to another over a connection of its own: one after the
// other, or at random times.
type Flow struct {
	Name        string `json:"name,omitempty"` // of its row in the results, which flows can share; default "message"
	From        int    `json:"from"`           // host, from 0
	To          int    `json:"to"`
	Copies      int    `json:"copies,omitempty"`      // of the flow; default 1
	At          Span   `json:"at,omitempty"`          // when it begins
	Until       Span   `json:"until,omitempty"`       // when it stops to begin messages; default: duration
	Messages    int    `json:"messages,omitempty"`    // how many there are; default: no bound
	Outstanding int    `json:"outstanding,omitempty"` // messages under way, without rate_per_s; default: the workload's
	Rate        int    `json:"rate_per_s,omitempty"`  // messages begin at random at this rate, however many are under way; default: when others end
	Size        Sizes  `json:"size"`                  // default: the workload's
}

// Sizes is a distribution of message sizes in bytes.
type Sizes struct {
	Fixed int `json:"fixed,omitempty"`
	Mean  int `json:"mean,omitempty"` // lognormal, with the 99th percentile below
	P99   int `json:"p99,omitempty"`
}

// Sweep runs every variant once at each value of one parameter.
type Sweep struct {
	Of     string `json:"of"` // "senders", "connections", "fanout", "lookup_us", "jitter_us", "window_bytes", "load_percent", "outstanding", "quantum", "size_bytes", "memory_mib", "hosts"
	Values []int  `json:"values"`
}

// Fault is something that happens to the network or a host at a time after the load
// began. Kinds:
//
//	loss, corrupt   frames of a host's link are lost, or discarded for a wrong checksum: Host, Rate
//	down            a host's link: Host
//	crash           a host ends without a word: Host
//	slow            a host's processor: Host, Percent
//	slow-memory     the way from a host's NIC to its memory, which then pauses the link: Host, Gbps
//	stuck-pause     a host's NIC pauses its link for no reason: Host, Until
//	switch-down     a switch with all its links: Switch
//	uplink-down     the link between a spine and a leaf: Switch, Leaf
//
// Switches are numbered from 0, spines first.
type Fault struct {
	At      Span    `json:"at"`
	Until   Span    `json:"until,omitempty"` // when it is mended; default never
	Kind    string  `json:"kind"`
	Host    *int    `json:"host,omitempty"`
	Switch  *int    `json:"switch,omitempty"`
	Leaf    *int    `json:"leaf,omitempty"`    // from 0
	Rate    float64 `json:"rate,omitempty"`    // share of frames
	Percent int     `json:"percent,omitempty"` // of the time that tasks take
	Gbps    int     `json:"gbps,omitempty"`
}

// Span is a span of virtual time; in a file it is text as "10ms" or "300ns".
type Span des.Time

// Variants are what a scenario compares, in the order of the results.
type Variants []Variant

// Variant is one way to carry the messages. In a file it is an object or the name of
// a standard variant; see [Standard].
type Variant struct {
	Name string `json:"name"`
	// Transport is "rdma" (default): engines of ByteExpress; a TCP: "tcp-cubic-200",
	// "tcp-cubic-5", "tcp-dctcp-5", or "tcp" with Control and MinRTO; or a program that has queue pairs and no engine: "rc"
	// sends over reliable connections, "ud" cuts messages into unreliable datagrams.
	Transport string `json:"transport,omitempty"`
	Gbps      int    `json:"gbps,omitempty"`       // of hosts' links; default: the topology's
	MTU       int    `json:"mtu_bytes,omitempty"`  // default: the NIC's
	PageBytes int    `json:"page_bytes,omitempty"` // default: the NIC's
	Get       bool   `json:"get,omitempty"`        // receivers READ large messages, instead of senders WRITing them
	NoDCQCN   bool   `json:"no_dcqcn,omitempty"`
	Control   string `json:"control,omitempty"`   // tcp: "cubic" (default), "reno", "dctcp"
	MinRTO    Span   `json:"min_rto,omitempty"`   // tcp: least timeout; default 200ms
	MinProbe  Span   `json:"min_probe,omitempty"` // tcp: least time until the tail of what was sent is probed; default 2ms; longer than timeouts, it never is

	WindowBytes     int  `json:"window_bytes,omitempty"`      // of an engine; 0: none
	WindowTarget    Span `json:"window_target,omitempty"`     // the window adapts to that queueing, between a fragment and WindowBytes
	NodeWindowBytes int  `json:"node_window_bytes,omitempty"` // of all engines of a host; 0: none

	QPPerSocket bool `json:"qp_per_socket,omitempty"` // sockets to one host do not share an engine

	byName bool // and not filled in yet
}

func (s Span) time() des.Time { return des.Time(s) }
