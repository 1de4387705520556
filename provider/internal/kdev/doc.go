// Package kdev is what every provider of a kernel device has in common, whatever
// its queues look like: the opened context with its limits, asynchronous events and
// the table of user handles by which they name their objects, the lost device, the
// protection domain with its regions, and the order of closing.
//
// A provider embeds [Context], and [QP], [CQ] and [SRQ] in its queues, which have the
// requests to the kernel and the order of destroying, and adds the queues' memory,
// posting and polling. Its domains are of [NewDomain].
package kdev
