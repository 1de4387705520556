// Package size reads message sizes from the command line.
package size

import (
	"fmt"
	"strconv"
	"strings"
)

// Max is the longest message in bytes: one less than the 2^31 that an RC queue
// pair could carry (IBTA 1.4, 9.7.7), so that a length fits every int.
const Max = 1<<31 - 1

// Bytes is a message size as a flag: 4096, 64K, 1M, 1GiB. K, M and G are powers
// of 1024.
type Bytes int

// String is the size as a number of bytes.
func (b *Bytes) String() string { return strconv.Itoa(int(*b)) }

// Type names the flag's value in the help text.
func (b *Bytes) Type() string { return "bytes" }

// Set reads a size from 1 to Max.
func (b *Bytes) Set(s string) error {
	n, err := Parse(s)
	if err != nil {
		return err
	}
	*b = Bytes(n)
	return nil
}

// OrZero is Bytes of a flag that may be 0 too: none, or no bound.
type OrZero int

// String is the size as a number of bytes.
func (b *OrZero) String() string { return strconv.Itoa(int(*b)) }

// Type names the flag's value in the help text.
func (b *OrZero) Type() string { return "bytes" }

// Set reads 0, or a size from 1 to Max.
func (b *OrZero) Set(s string) error {
	if s == "0" {
		*b = 0
		return nil
	}
	return (*Bytes)(b).Set(s)
}

// Parse reads a size from 1 to Max bytes; the error names the limit.
func Parse(s string) (int, error) {
	digits := strings.TrimRight(s, "KMGiBkmgb")
	shift, ok := suffixes[strings.ToUpper(s[len(digits):])]
	if !ok || digits == "" {
		return 0, fmt.Errorf("size %q: want a number of bytes, as 4096, 64K or 1M", s)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil && strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("size %q: want a number of bytes, as 4096, 64K or 1M", s)
	}
	if err != nil || n < 1 || n > Max>>shift {
		return 0, fmt.Errorf("size %s: must be 1 to %d bytes (2^31-1)", s, Max)
	}
	return int(n) << shift, nil
}

var suffixes = map[string]int{
	"": 0, "B": 0, "K": 10, "KB": 10, "KIB": 10, "M": 20, "MB": 20, "MIB": 20, "G": 30, "GB": 30, "GIB": 30,
}
