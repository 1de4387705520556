// Package ps is a sharded parameter server on archon: rows of float32 by 64-bit key,
// with Fetch(keys) -> rows and Push(keys, gradients).
//
// # Model
//
// Every key has a row of dim values, from the start. Before the first Push to it a
// row has the values of [InitialValue], which follow from the table's seed, the key
// and the position alone. A Push takes one step of the table's [Optimizer],
// by default stochastic gradient descent,
//
//	row[i] -= learningRate * gradient[i]
//
// in float32 with the product rounded before the difference, so that every machine
// computes the same bits. Each row has a version, the number of gradients that it got. A row takes memory from its first Push (or [Shard.Create])
// on; fetching an untouched one takes none.
//
// A request's part at one shard is atomic: a Fetch sees all or nothing of a Push.
// Across shards there is no order.
//
// # Keys and shards
//
// The shard of a key is the high half of [Hash](key) * shards: the hash's top bits
// choose the shard, its low bits the place in the shard's index. A request that names
// another number of shards, or a key that belongs elsewhere, is refused with
// FailedPrecondition; one of another dimension with InvalidArgument.
//
// A [Map] in place of that may have ranges of any length, of hashes or of the keys
// themselves, and says where the replicas of each shard are ([Config].Map,
// [NewMapClient]). It has a version, which every request names. A shard refuses requests by
// a newer map than its own, and by an older one if it began with its own, or if some keys
// are no longer its own, with [WrongMapError] before it does anything. A client
// follows the map: it gets a newer one from the shard that refused a part of a request, and
// sends that part, with the time that is left, to where its keys are now.
//
// A key may occur twice: a Fetch gives its row twice, a Push applies its gradients one
// after the other in the order of the request. A Push with a NaN or an infinity among
// its gradients is refused with InvalidArgument, and nothing of that shard's part is
// applied. Sums that overflow follow IEEE 754.
//
// # Each Push once
//
// A client has an id ([ClientID]) and numbers its pushes to each shard. A shard remembers
// the numbers that it applied, and answers a repeated Push as the first time, without
// applying it again: after a lost answer, from a copy that comes late or in another
// order, and after a restore, if the snapshot has the first. So channels may repeat a
// Push ([NewChannelClient]), and a caller may, with PushCall.Again.
//
// What is remembered of a client is at most 1024 runs of numbers without a gap, however long;
// a gap is a Push that failed or is still on its way. Beyond that, and beyond
// Config.MaxClients clients, of which the one whose last new Push is longest ago is
// forgotten, a shard cannot tell a repetition from a first try any more, and refuses
// such a Push with [ErrForgotten]: it may be missing, but it is never applied twice. A new
// client whose clock is behind the birth of a forgotten one is refused likewise.
//
// # Replicas
//
// A shard may have several replicas ([Shard.Replicate]), which a client reaches by a
// channel. Each applies the pushes that clients bring, sends them to the others in order,
// and answers when every other one has them, or cannot be fetched from. So:
//
//   - A Push that was answered is at every replica that serves, and at none twice. It is
//     lost only if all replicas that had it die before another copied them.
//   - A Fetch sees every Push that was answered before it began, at any replica. For that
//     a replica serves only while it holds a lease of each other one, or that one cannot
//     be reached; else a call waits, and is then refused as retryable.
//   - A replica that returns after a while takes what it missed from the others' logs; one
//     that begins anew, or was away for longer than the logs are, copies another
//     ([Replica.Wait]). Meanwhile the others serve.
//   - Replicas that live and cannot reach each other, though clients reach both, go on each
//     on its own. Fetches then miss what the other one took; when they meet again, both
//     take the other's pushes, each once.
//   - All replicas apply the same pushes, and versions agree. Clients send pushes to one
//     replica while that lives, and so all apply them in one order, and agree in every bit;
//     pushes to different replicas at once may be applied in different orders, so that last
//     bits, and Adagrad's steps, differ.
//   - With three replicas or more, one that was away while a second took pushes and died
//     may miss those that the third has only by a copy. Two have no such case.
//
// Clocks need only to run equally fast. The fetch of a replicated shard runs on a worker
// of the server: give that as many as pushes and fetches may wait at once.
//
// # When the map changes
//
// [Rebalance] moves rows to the shards that own them by another map, while all serve. For
// clients the Pushes and Fetches above hold meanwhile, each Push once. In order:
//
//   - Replicas of a shard that gets keys copy their rows, a window at a time, from a replica
//     of each shard that loses them, and what is pushed to them since. Nobody notices but by
//     the work that it takes, a third of one connection's time at most.
//   - When little is left, pushes to the keys that move wait, at all replicas, for some round
//     trips: replicas exchange what they have, and the last rows are copied. If that is not
//     over soon, or a replica fails meanwhile, pushes go on, and it is tried again.
//   - The change is decided when every replica of every losing shard has promised to take no
//     more pushes to these keys. Then the new map goes to the gaining shards, then to the others,
//     as an entry of the log that replicas send to each other. A replica that was stopped or
//     died learns of it so, or from the copy it makes, before it serves.
//   - When no replica of a losing shard can serve what left, the gaining ones do. Fetches of
//     these keys wait for that, from when the losing shards have the new map.
//   - Rows that left are removed little by little; memory that is not needed any more is given
//     back when no response is sent from it.
//
// All of that goes over the TCP addresses of the maps, whatever clients use.
//
// Until the decision all replicas of shards that lose or get keys are needed, or nothing
// changes; the error says which one is not there. After it one of each shard is enough. If
// the process that calls Rebalance dies before the decision, a freeze ends by itself; if it dies
// while replicas promise, or after, pushes to the keys that move wait until somebody calls
// Rebalance again with the same maps, which completes the change or gives it up. While a shard
// gives or gets rows it refuses Load and Restore.
//
// # Static tensors
//
// What many read and nobody changes needs no request: a server publishes it ([Tensors]), and
// a reader ([Tensor]) learns once where it lies and READs it from there over RDMA. An
// edition is never written to: a new one goes to other memory, the old one's header says that
// it was replaced, and its memory is kept until every reader has noticed or has had to ask
// anew. So a READ gives one edition whole, and never one that was replaced before it began;
// name, version and checksums are compared besides, in case the memory is something else by
// then. Over TCP, from a server that was started anew, and when a READ fails, the same
// Read makes a call.
//
// # Snapshots
//
// [Shard.SaveFile] writes rows, versions, optimizer state and what is remembered of the
// clients as of one moment, while the shard serves; [Shard.RestoreFile] reads it back.
// Every block has a checksum: a file that is cut off or changed is refused whole, with the
// byte at which it is wrong. It has the shard's map too: see [Shard.Restore] for what
// is restored under another one. [Shard.Load] sets rows in bulk.
//
// # Buffers
//
// A shard sends long rows from its table, where they lie: over ByteExpress if the table
// is in the node's memory (Config.Memory), over TCP from any memory. While a row is lent
// to a response it does not change; a Push meanwhile writes to another place. Short rows,
// and those that have no memory yet, are copied together into the response's buffer.
// The client's rows are views of the buffers received: they hold until Release.
package ps
