package testdev

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/verbs"
)

// MarkVerb is in the log of every test that tries a verb on a device. From these
// tests the kernel lab makes the table of docs/verbs.md: a verb works where they
// pass.
const MarkVerb = "testdev: verb: "

// MarkUnsupported starts the reason of a test that was skipped because kernel or
// device lack what it tests.
const MarkUnsupported = "testdev: unsupported: "

// Verb says that this test, or this subtest, shows whether the verbs work. Name them
// as rows of the table, "SRQ: create", before anything can skip the test.
func Verb(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Log(MarkVerb + name)
	}
}

// Supported skips the test if err is a [verbs.UnsupportedError]: what the test
// needs is not there, and it was said in the way that it has to be. It does nothing
// with any other error, or none.
func Supported(t testing.TB, err error) {
	t.Helper()
	var u *verbs.UnsupportedError
	if errors.As(err, &u) {
		t.Skip(MarkUnsupported + u.Error())
	}
}
