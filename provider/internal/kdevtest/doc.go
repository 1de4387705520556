// Package kdevtest is the tests that every kernel device has to pass, whatever its
// provider. A provider's own tests make a [Rig] of the device and [Run] all of these;
// what only its device does they test themselves, on a [Pair].
package kdevtest
