// Package naked is in no row.
package naked
