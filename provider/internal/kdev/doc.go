// Package kdev is what every provider of a kernel device has in common, whatever
// its queues look like: the opened context with its limits, asynchronous events and
// the table of user handles by which they name their objects, the lost device, the
// protection domain with its regions, and the order of closing.
//
// A provider embeds [Context] and [PD] and adds the making of its queues. Its queue
// pairs and completion queues answer to [QueuePair] and [CompletionQueue].
package kdev
