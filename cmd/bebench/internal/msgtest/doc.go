// Package msgtest measures ByteExpress sockets: whole messages between two nodes,
// bandwidth and latency.
//
// The client and the server run the same code ([Run]). The server's node listens,
// the client's dials the sockets, and each message size is one session of the
// control connection. In a bandwidth test a sender keeps a number of messages
// posted on every socket, and latency is from Post to the moment when it has the
// buffer back: the peer's device has all of the message. The time of a bandwidth test is
// from the first message of all sockets until the receivers have the last, whatever is
// under way in the kernel or in a queue when the senders are done, and so is its CPU
// time. Latency is measured by ping-pong and is half a round trip, from Post to the message that Recv gives.
//
// Every message carries its number and a byte sequence that depends on the
// socket; with Verify each is checked as it comes.
package msgtest
