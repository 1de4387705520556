// Package rpcjob measures calls of package archon: a server that echoes, or answers
// with a stream, and a client that keeps a number of calls outstanding.
package rpcjob
