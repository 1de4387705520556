// Package testhost makes machines for tests: a directory with the files that a
// machine has in /sys, /dev and /proc, and modelled NICs behind the device nodes in
// it. A test breaks one thing of a healthy machine and looks who notices.
package testhost
