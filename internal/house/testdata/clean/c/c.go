// Package c is below b, but not in its row.
package c

// X is documented.
const X = 1
