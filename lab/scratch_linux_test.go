package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// What a killed lab left is removed by the next one; what a running one uses is not. The
// test runs itself as the lab.
func TestScratch(t *testing.T) {
	if os.Getenv("LAB_TEST_SCRATCH") != "" {
		dir, err := newScratch()
		fmt.Println(dir)
		if err == nil {
			time.Sleep(10 * time.Minute)
		}
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	its, kill := killable(t, "LAB_TEST_SCRATCH=1")
	mine, err := newScratch()
	if err != nil || !isDir(mine) || !isDir(its) {
		t.Errorf("made %q, with %q in use: %v", mine, its, err)
	}
	kill()
	if _, err := newScratch(); err != nil || isDir(its) || !isDir(mine) {
		t.Errorf("%q of the killed lab is there: %t, mine: %t, %v", its, isDir(its), isDir(mine), err)
	}
}
