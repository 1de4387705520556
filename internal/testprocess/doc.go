// Package testprocess is for tests whose servers are processes of their own: the test
// binary itself, started with a word in its environment that its TestMain knows; addresses
// for them that nobody else takes; and a proxy that loses what is sent.
package testprocess
