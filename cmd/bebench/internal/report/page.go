package report

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/pkg/errors"
)

// Page is one HTML file with all in it: text as it was printed, and charts.
type Page struct {
	Title string
	Text  string // in a fixed font
	Plots []Plot
}

// Save writes the page to a file in one step.
func (p *Page) Save(path string) error { return save(path, p.write) }

func (p *Page) write(w io.Writer) error {
	var b strings.Builder
	title := html.EscapeString(p.Title)
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n", title)
	b.WriteString("<style>body{font-family:sans-serif;margin:2em}pre{overflow-x:auto}svg{max-width:760px;display:block;margin:1em 0}</style></head>\n")
	fmt.Fprintf(&b, "<body><h1>%s</h1>\n<pre>%s</pre>\n", title, html.EscapeString(p.Text))
	for i := range p.Plots {
		if err := p.Plots[i].SVG(&b); err != nil {
			return errors.Wrap(err, "chart")
		}
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
