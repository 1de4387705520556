// Package prefetch has the processor's cache get what is needed soon. Nobody waits for it,
// and nothing else comes of it.
package prefetch
