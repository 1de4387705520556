// Package cq is the vocabulary of completions: what a completion queue (CQ)
// reports, the standard names of statuses and opcodes, and what a CQ can do.
//
// A device reports each finished work request as one [Completion]. Only a
// receive, a signaled send request, or a failed one is reported; a send-side
// completion also tells that every earlier request of the same queue pair has
// finished.
//
// The waiting protocol is that of every verbs device: arm the CQ, poll once
// more, and only if that found nothing, wait. One arm gives at most one event.
package cq
