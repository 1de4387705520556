//go:build !race

package be_test

const raceEnabled = false
