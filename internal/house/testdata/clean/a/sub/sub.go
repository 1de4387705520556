// Package sub lies under a package with an Example.
package sub
