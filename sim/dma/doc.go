// Package dma moves bytes as the DMA engine of a NIC does: for simulated NICs, whose one
// copy of each message takes the time of a plain copy then, or less.
//
// A device writes whole cache lines without reading them first, and writes them into the
// last level of cache while there is room, since the receiver mostly reads them next. The
// copy of Go reads each line that it is about to write, but from 1 MiB on goes around all
// caches. So what is long is moved by the processor's own string move where the place was
// written lately, and around the caches where it was not, as it is in none.
package dma
