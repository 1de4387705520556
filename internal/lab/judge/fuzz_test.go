package judge

import (
	"bytes"
	"testing"
)

// Whatever the guest sends, the judge gives a verdict, and a good one only for the
// records of this run.
func FuzzLine(f *testing.F) {
	f.Add(bytes.Join(lines(goodRun()), nil))
	f.Add([]byte(`{"nonce":"N1","seq":1,"kind":"end","item":"pair"}`))
	f.Add([]byte("[    0.000000] Linux version 6.1\n\x16--- PASS: "))
	f.Fuzz(func(t *testing.T, report []byte) {
		j := New(twoItems())
		taken := 0
		for line := range bytes.Lines(report) {
			if _, ok := j.Line(line); ok {
				taken++
			}
		}
		results, problems := j.Finish()
		good := len(problems) == 0
		for _, r := range results {
			good = good && len(r.Problems) == 0
		}
		// Stages, begins, exits and ends, a PASS, a mark, a test's result, wanted output.
		if least := 2 + 2 + 3 + 2 + 1 + 4; good && taken < least {
			t.Errorf("good after %d records, which needs %d", taken, least)
		}
	})
}
