package main

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/byteexpress/byteexpress/internal/lab/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole way on a host: plan, processes, records, verdict.
func TestRunPlan(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := func(exit int, wants ...string) plan.Item {
		return plan.Item{Name: "list", Limit: time.Minute, Procs: []plan.Proc{
			{Role: "p", Argv: []string{self, "-test.list", "TestRunPlan"}, Exit: exit, Wants: wants},
		}}
	}
	for _, tc := range []struct {
		desc string
		item plan.Item
		want error
	}{
		{"good", list(0, "TestRunPlan"), nil},
		{"other exit status", list(1), errFailed},
		{"other output", list(0, "TestOther"), errFailed},
	} {
		p := plan.Plan{Nonce: "N", Device: "rxe0", Items: []plan.Item{tc.item}}
		v := newView(p, kernel{}, options{})
		runPlan(t.Context(), p, 1, v)
		if err := v.finish(nil); err != tc.want {
			t.Errorf("%s: %v, want %v", tc.desc, err, tc.want)
		}
	}
}
