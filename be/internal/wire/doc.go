// Package wire is the encoding of ByteExpress control messages: what one engine
// SENDs into the posted receives of its peer.
//
// Each message is a 16-byte [Header] and a body whose layout follows from the
// header's type. All integers are little-endian. Decoders take bytes of a peer:
// they never panic, and their errors name the field.
//
//	type           body                                  meaning
//	OPEN           listener u32, service                 make a socket
//	ACCEPT         -                                     it is made
//	REFUSE         reason u32, text                      it is not
//	DATA           payload up to the eager limit         a small message, whole
//	RTS            length u64                            a large message wants to be sent
//	RTS, get mode  length u64, address u64, rkey u32     a large message may be read there
//	CTS            transfer u32, address u64, rkey u32   write it there
//	FIN            0 u32, status u32                     get mode: the message of this sequence was read, or why not
//	REJECT         reason u32                            the message of this sequence is not taken
//	CANCEL         -                                     the sender gives it up; after its last WRITE
//	CREDIT         -                                     only carries granted
//	PING, PONG     nonce u64                             is the peer there
//	CLOSE, CLOSED  reason u32                            end of a socket
//	GOAWAY         last socket u32, reason u32           orderly end of the engine
//	SOCKET_CREDIT  -                                     sequence: messages that the application took
//	RECALL         -                                     sequence: credits that the receiver of this may keep unused
//	RETURN         -                                     sequence: credits that the sender of this gives back
//	PACK           for each: socket u32, sequence u32,   small messages of any sockets; sequence: how many,
//	               length u32; then the payloads         2 to 16
//
// Granted, in every header, is how many receives its sender ever posted (mod
// 2^32), or of a shared queue ever granted; a SEND or WRITE_WITH_IMM uses one up.
// The last credit is kept for CREDIT.
//
// Who shares receives among peers may grant each more than the recv_depth of its
// hello, up to recv_most, and asks for unused credits by RECALL. RETURN gives back
// what is above the number, besides the credit that it uses itself; if that is
// none, there is no RETURN. Both are sent only if both hellos have the feature
// "lend"; without it, nobody grants more than recv_depth at a time.
//
// A socket's messages, small or large, are numbered from 0. The sender stays
// within the receiver's backlog: messages begun less those that SOCKET_CREDIT
// counts. So a socket that nobody reads holds a bounded number of receive
// buffers, and stops nobody else.
//
// A PACK stands for as many DATA, in the order of its table, and uses one credit. It
// is sent only if both hellos have the feature "pack", and is with its header no longer
// than a DATA may be.
//
// A socket opened with the flag unordered drops only the order of delivery: its
// messages are numbered and counted as any others.
//
// A large message is RTS, CTS, WRITEs of one fragment each, and a last
// WRITE_WITH_IMM whose immediate is the transfer of the CTS: the receiver's slot
// and its generation.
//
// A CTS may come late, as a receiver of many has them take turns. Its hello then has
// expect_bytes: so much of the message, from its start, is accounted for, and may be
// on its way whatever the sender's window is.
//
// In get mode it is RTS, with the flag and where the message is, READs of the
// receiver at its own pace, and FIN: only then, or after REJECT, is the sender's
// buffer its own again, also when it sent CANCEL. The receiver sends CLOSE and
// CLOSED when its READs have ended.
//
// A known buffer is named by a [Token], which applications carry in messages. Its
// holder may WRITE there at any time, the last fragment WRITE_WITH_IMM with the
// transfer of the token, until its CLOSE or CLOSED. If both hellos have the feature
// "tags", its tag tells whose it is: the first 4 bytes, little-endian, of the publishing
// side's incarnation, XOR its first PSN times 256, XOR its queue pair's number, plus the how
// manieth socket this is that its opener opened on the engine, mod 2^32. Else it is 0.
//
// After CLOSE its sender sends nothing more on that socket; CLOSED answers it,
// after the answering side's last WRITE, and frees the number.
package wire
