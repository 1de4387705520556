package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestPlot: the chart is well-formed XML, names what is in it, and has every point
// inside its frame.
func TestPlot(t *testing.T) {
	for _, p := range []Plot{
		{Title: "a < b", X: "time", Y: "MiB", Lines: []Line{{"one", [][2]float64{{0, 0}, {1, 5}, {7, 1234}}}, {"two", [][2]float64{{3, 4}}}}},
		{Title: "none"},
	} {
		var b strings.Builder
		if err := p.SVG(&b); err != nil {
			t.Fatal(err)
		}
		lines := 0
		for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, b.String())
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "polyline" {
				lines++
			}
		}
		if lines != len(p.Lines) || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%d lines in\n%s", lines, b.String())
		}
		for _, l := range p.Lines {
			if !strings.Contains(b.String(), ">"+l.Name+"<") {
				t.Errorf("%s is not named", l.Name)
			}
		}
	}
}

func TestTick(t *testing.T) {
	for top, want := range map[float64]float64{0: 1, 1: 0.2, 5: 1, 7: 2, 99: 20, 100: 20, 101: 50, 1234: 500} {
		if got := tick(top); got < want*0.999 || got > want*1.001 {
			t.Errorf("tick(%g) = %g, want %g", top, got, want)
		}
	}
}
