// Package common says nothing.
package common

// see /work/x, /tmp/y and issue 7
// TODO: more
