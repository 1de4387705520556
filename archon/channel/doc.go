// Package channel calls services of several replicas and keeps calling them when
// replicas, links or RDMA fail.
//
// A [Channel] is the way to one service. A [Resolver] says where its replicas are,
// also when that changes. The channel holds a connection to each, over RDMA where that
// works and over TCP where it does not, sends each call to one of them, and repeats
// what may be repeated:
//
//	ch, err := channel.New(channel.Config{
//		Service:  "model",
//		Resolver: channel.Static(channel.Endpoint{Name: "a", RDMA: "10.0.0.1:700", TCP: "10.0.0.1:701"}, ...),
//		RDMA:     channel.NewDevice(open, be.Config{}),
//	})
//	err = archon.Invoke(ctx, ch, fetch, &request, &response)
//
// A Channel is an [archon.Invoker] and an [archon.Opener], so typed calls and streams
// work on it as on a Client; Go is the asynchronous form. What makes a request must be
// able to make it again: archon.RawBytes and every codec can, a buffer of a Client's
// AllocRaw cannot.
//
// # Repetition
//
// A call is sent again only if it may be: it is idempotent, as Config.Idempotent or
// the call itself says, or it was refused before its handler ran. Then
//
//   - a lost connection moves it to another replica at once,
//   - a failure or refusal sends it again after a back-off with jitter,
//   - an attempt that takes longer than AttemptTimeout gets another beside it,
//   - one that takes longer than most do gets a hedge on another replica; the first
//     answer counts and the other attempt is cancelled.
//
// All but the first come out of a budget that every call adds a tenth of an attempt
// to, so that retries do not multiply the load on a service that is down. The request
// is encoded anew for each attempt, into the transport's own memory.
//
// # Selection
//
// Of two replicas drawn, the one with fewer outstanding attempts and lower latency is
// taken, among the nearest that there are (Config.Locality), or that of the call's
// affinity. Replicas that fail too often are left out for a while; then one call
// probes each.
//
// # Connections
//
// A connection that is silent is pinged. A dead one is found within
// Recovery.DetectionBound, and its calls go elsewhere. When RDMA fails, at whatever
// step or later, calls go over TCP, and the reason is counted (Stats). RDMA is tried
// beside it, and used again when it has worked for the settle time; a link that flaps
// faster stays on TCP. A server that was started anew at the same address is known by
// its incarnation, and nothing is held against it that the old one did.
//
// Package core has the rules; this package is their clock, goroutines and connections.
package channel
