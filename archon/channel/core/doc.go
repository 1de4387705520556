// Package core decides how the calls of one service reach its replicas: which one
// each attempt goes to, when it is repeated or hedged, which replicas are left out,
// and over which transport each is reached. It has no clock, no goroutine and no
// socket: it is given the time since some start, random numbers and events, and
// answers with what to do and when to be called again.
//
//   - [Op] is one call: its attempts, time-outs, back-off and hedge.
//   - [Set] is the replicas: selection by load and latency, ejection of outliers.
//   - [Link] is the way to one replica: RDMA, TCP while that fails, and back.
//   - [Budget] bounds what retries and hedges add to the calls.
//   - [Latency] estimates the delay after which a hedge is worth it.
//
// Set, Replica and Budget may be used from any goroutine; an Op, a Link or a Latency
// belongs to whoever holds its lock. Package channel drives all of it in real time.
package core
