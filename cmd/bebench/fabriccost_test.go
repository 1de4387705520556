package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/cost"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/scenario"
)

// TestFabricCost measures what a push of the training scenario costs, from 50 to 470
// hosts, without the set-up: a push takes as many events everywhere, and the time of an
// event grows as more of the state of all pairs has to come from memory. It prints the
// table of docs/fabric.md and draws its chart to the file that FABRIC_COST_SVG names.
// Nothing is asserted about time.
func TestFabricCost(t *testing.T) {
	chart := os.Getenv("FABRIC_COST_SVG")
	if chart == "" {
		t.Skip("takes a minute of an idle machine and 2 GB: set FABRIC_COST_SVG to a file for the chart")
	}
	micros, events := report.Line{Name: "us"}, report.Line{Name: "events"}
	var table strings.Builder
	for _, hosts := range []int{50, 100, 200, 300, 470} {
		s, err := scenario.Load("training")
		for _, err := range []error{err, s.Scale(hosts), s.SetDuration(des.Of(2800 * time.Microsecond)), s.Pick([]string{"static"})} {
			if err != nil {
				t.Fatal(err)
			}
		}
		begin := cost.Start()
		var setUp cost.Spent
		r, err := s.Jobs()[0].Run(func(des.Time, des.Time) error {
			if setUp.Wall == 0 {
				setUp = begin.Since()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		load, pushes := begin.Since().Sub(setUp).Busy(), float64(r.Classes[0].Count)
		us := float64(load) / 1e3 / pushes
		fmt.Fprintf(&table, "| %d | %.0f | %.1f million | %.0f | %.1f s | %.1f s | %.0f us | %.2f us |\n",
			hosts, pushes, float64(r.Events)/1e6, float64(r.Events)/pushes, setUp.Busy().Seconds(), load.Seconds(), us, us*pushes/float64(r.Events))
		micros.Points = append(micros.Points, [2]float64{pushes, us})
		events.Points = append(events.Points, [2]float64{pushes, float64(r.Events) / pushes})
	}
	t.Logf("hosts, pushes, events, events a push, set-up, load, a push, an event:\n%s", &table)
	plot := report.Plot{
		Title: "training, 50 to 470 hosts: processor time and events against traffic", X: "pushes", Y: "us, and events, of a push",
		Lines: []report.Line{micros, events},
	}
	if err := plot.Save(chart); err != nil {
		t.Fatal(err)
	}
}
