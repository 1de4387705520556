package psjob

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/ps"
)

const (
	// streamLength is how many keys are drawn of the synthetic distribution.
	streamLength = 1 << 18
	// skew is the exponent of that distribution: the rank-frequency law of words.
	skew = 1.07
	// maxTokens and maxText bound how much of a text is read.
	maxTokens = 4 << 20
	maxText   = 1 << 30 // bytes of one file
)

// Synthetic gives a stream of keys with the skew of words: rows distinct ones at
// most.
func Synthetic(rows int, seed uint64) []uint64 {
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), skew, 1, uint64(rows-1))
	keys := make([]uint64, streamLength)
	for i := range keys {
		keys[i] = ps.Hash(zipf.Uint64() + seed<<32)
	}
	return keys
}

// FromText gives the words of a text file, or of all regular files below a
// directory in lexical order, as keys: a word is a run of letters, digits and
// underscores, and its key the hash of its bytes. It stops after 4 million words.
func FromText(ctx context.Context, path string) ([]uint64, error) {
	var keys []uint64
	// A pipe may let its reader wait for ever, and a device has no end.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = errors.Errorf("%s: neither a regular file nor a directory", path)
	}
	if err != nil {
		return nil, errors.Wrap(err, "--keys-from")
	}
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(keys) >= maxTokens {
			return fs.SkipAll
		}
		if !d.Type().IsRegular() && name != path || d.IsDir() {
			return nil
		}
		keys, err = appendWords(ctx, keys, name)
		return err
	})
	if err != nil {
		return nil, errors.Wrap(err, "--keys-from")
	}
	if len(keys) == 0 {
		return nil, errors.Errorf("--keys-from %s: there is no word in it", path)
	}
	return keys, nil
}

// The hash of a word is 64-bit FNV-1a (draft-eastlake-fnv), mixed once more.
const (
	fnvBasis = 0xcbf29ce484222325
	fnvPrime = 0x100000001b3
)

func appendWords(ctx context.Context, keys []uint64, name string) ([]uint64, error) {
	f, err := os.Open(name)
	if err != nil {
		return keys, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.LimitReader(f, maxText), 64<<10)
	h, inWord := uint64(fnvBasis), false
	for len(keys) < maxTokens {
		if r.Buffered() == 0 && ctx.Err() != nil {
			return keys, ctx.Err()
		}
		b, err := r.ReadByte()
		if err == nil && isWord(b) {
			h, inWord = (h^uint64(b))*fnvPrime, true
			continue
		}
		if inWord {
			keys = append(keys, ps.Hash(h))
			h, inWord = fnvBasis, false
		}
		if err != nil {
			break // the end, or a file that cannot be read to its end
		}
	}
	return keys, nil
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b >= 0x80
}

// Distinct gives the keys of a stream once each, in ascending order.
func Distinct(stream []uint64) []uint64 {
	keys := slices.Clone(stream)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// TopShare is the part of the stream that the n most frequent keys make up.
func TopShare(stream []uint64, n int) float64 {
	sorted := slices.Clone(stream)
	slices.Sort(sorted)
	var counts []int
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		counts = append(counts, j-i)
		i = j
	}
	slices.Sort(counts)
	top := 0
	for _, c := range counts[max(0, len(counts)-n):] {
		top += c
	}
	return float64(top) / float64(len(stream))
}
