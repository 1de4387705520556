// Package hugepage has Go's heap lie in huge pages, for programs that use so much of it
// in no order that the translation of addresses is a good part of their time. Linux gives
// transparent huge pages only to who asks, where
// /sys/kernel/mm/transparent_hugepage/enabled says madvise, and the runtime does not ask.
package hugepage
