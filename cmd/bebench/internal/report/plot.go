package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Plot is a chart of lines over a common axis, written as SVG.
type Plot struct {
	Title, X, Y string // of the chart and its axes
	Lines       []Line
}

// Line is one line of a chart.
type Line struct {
	Name   string
	Points [][2]float64 // x and y, none below 0
}

const (
	plotWidth, plotHeight = 720, 420
	plotLeft, plotRight   = 80, 20
	plotTop, plotBottom   = 48, 56
	plotTicks             = 5
)

var plotColours = []string{"#1f4e9c", "#b8481a", "#2d7d46", "#6b4a9c"}

// Save writes the chart to a file in one step.
func (p *Plot) Save(path string) error { return save(path, p.SVG) }

// SVG writes the chart. Both axes start at 0.
func (p *Plot) SVG(w io.Writer) error {
	var top [2]float64
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			top[0], top[1] = max(top[0], pt[0]), max(top[1], pt[1])
		}
	}
	xStep, yStep := tick(top[0]), tick(top[1])
	xTop, yTop := max(math.Ceil(top[0]/xStep), 1)*xStep, max(math.Ceil(top[1]/yStep), 1)*yStep
	x := func(v float64) float64 { return plotLeft + v/xTop*(plotWidth-plotLeft-plotRight) }
	y := func(v float64) float64 { return plotHeight - plotBottom - v/yTop*(plotHeight-plotTop-plotBottom) }

	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", plotWidth, plotHeight)
	text := func(atX, atY float64, anchor, more, s string) {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", atX, atY, anchor, more, html.EscapeString(s))
	}
	text(plotWidth/2, 20, "middle", " font-size=\"14\"", p.Title)
	text((plotLeft+plotWidth-plotRight)/2, plotHeight-12, "middle", "", p.X)
	text(16, plotHeight/2, "middle", fmt.Sprintf(" transform=\"rotate(-90 16 %d)\"", plotHeight/2), p.Y)
	for v := 0.0; v <= yTop+yStep/2; v += yStep {
		fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>\n", plotLeft, y(v), plotWidth-plotRight)
		text(plotLeft-6, y(v)+4, "end", "", fmt.Sprintf("%g", v))
	}
	for v := 0.0; v <= xTop+xStep/2; v += xStep {
		text(x(v), plotHeight-plotBottom+18, "middle", "", fmt.Sprintf("%g", v))
	}
	fmt.Fprintf(&b, "<path d=\"M%d %dV%dH%d\" stroke=\"black\" fill=\"none\"/>\n", plotLeft, plotTop, plotHeight-plotBottom, plotWidth-plotRight)
	for i, l := range p.Lines {
		colour := plotColours[i%len(plotColours)]
		fmt.Fprintf(&b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour)
		for _, pt := range l.Points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(pt[0]), y(pt[1]))
		}
		b.WriteString("\"/>\n")
		text(plotLeft+float64(i)*150, 38, "start", fmt.Sprintf(" fill=\"%s\"", colour), l.Name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// tick gives a round step that divides 0 to top into about plotTicks parts.
func tick(top float64) float64 {
	if top <= 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(top/plotTicks)))
	for _, m := range []float64{1, 2, 5} {
		if top/(step*m) <= plotTicks {
			return step * m
		}
	}
	return step * 10
}
