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
	LogX        bool // the X axis is logarithmic: of what spans powers of ten
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
	plotLegend            = 4 // names in a row
)

var plotColours = []string{"#1f4e9c", "#b8481a", "#2d7d46", "#6b4a9c", "#8a6d00", "#b0306a", "#2a8a9a", "#555555", "#7fa02a"}

// Save writes the chart to a file in one step.
func (p *Plot) Save(path string) error { return save(path, p.SVG) }

// SVG writes the chart. Both axes start at 0; a logarithmic one at the power of ten
// below the first point. Products are rounded, so that every machine draws the same.
func (p *Plot) SVG(w io.Writer) error {
	var top [2]float64
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			top[0], top[1] = max(top[0], pt[0]), max(top[1], pt[1])
		}
	}
	xStep, yStep := tick(top[0]), tick(top[1])
	xTop, yTop := max(math.Ceil(top[0]/xStep), 1)*xStep, max(math.Ceil(top[1]/yStep), 1)*yStep
	x := func(v float64) float64 { return plotLeft + float64(v/xTop*(plotWidth-plotLeft-plotRight)) }
	marks := ticks(xTop, xStep)
	if p.LogX {
		low, high := p.decades()
		x = func(v float64) float64 {
			return plotLeft + float64((math.Log10(max(v, low))-math.Log10(low))/(math.Log10(high)-math.Log10(low))*(plotWidth-plotLeft-plotRight))
		}
		marks = marks[:0]
		for v := low; v <= high; v *= 10 {
			marks = append(marks, v)
		}
	}
	rows := (len(p.Lines) + plotLegend - 1) / plotLegend
	top0 := float64(plotTop + max(rows-1, 0)*16)
	y := func(v float64) float64 { return plotHeight - plotBottom - float64(v/yTop*(plotHeight-top0-plotBottom)) }

	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", plotWidth, plotHeight)
	text := func(atX, atY float64, anchor, more, s string) {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", atX, atY, anchor, more, html.EscapeString(s))
	}
	text(plotWidth/2, 20, "middle", " font-size=\"14\"", p.Title)
	text((plotLeft+plotWidth-plotRight)/2, plotHeight-12, "middle", "", p.X)
	text(16, plotHeight/2, "middle", fmt.Sprintf(" transform=\"rotate(-90 16 %d)\"", plotHeight/2), p.Y)
	for _, v := range ticks(yTop, yStep) {
		fmt.Fprintf(&b, "<path d=\"M%d %.1fH%d\" stroke=\"#dddddd\"/>\n", plotLeft, y(v), plotWidth-plotRight)
		text(plotLeft-6, y(v)+4, "end", "", fmt.Sprintf("%g", v))
	}
	for _, v := range marks {
		text(x(v), plotHeight-plotBottom+18, "middle", "", fmt.Sprintf("%g", v))
	}
	fmt.Fprintf(&b, "<path d=\"M%d %.0fV%dH%d\" stroke=\"black\" fill=\"none\"/>\n", plotLeft, top0, plotHeight-plotBottom, plotWidth-plotRight)
	for i, l := range p.Lines {
		colour := plotColours[i%len(plotColours)]
		fmt.Fprintf(&b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour)
		for _, pt := range l.Points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(pt[0]), y(pt[1]))
		}
		b.WriteString("\"/>\n")
		text(plotLeft+float64(i%plotLegend)*150, 38+float64(i/plotLegend)*16, "start", fmt.Sprintf(" fill=\"%s\"", colour), l.Name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// ticks are the places from 0 to top that are marked.
func ticks(top, step float64) (marks []float64) {
	for i := 0.0; i*step <= top+step/2; i++ {
		marks = append(marks, i*step)
	}
	return marks
}

// decades gives the powers of ten around all points.
func (p *Plot) decades() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			low, high = min(low, max(pt[0], 1)), max(high, pt[0])
		}
	}
	if high == 0 {
		return 1, 10
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	return low, max(high, 10*low)
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
