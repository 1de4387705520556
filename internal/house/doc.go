// Package house holds the rules of this repository as checks on its source
// tree, so that `go test ./internal/house` keeps them. The import table and the
// list of cores are read from ARCHITECTURE.md: what is written there is what is
// enforced.
//
// The checks parse files and never ask the go command, so they see the files of
// every operating system and architecture at once. Directories named testdata
// are not code: they are checked for words only.
package house
