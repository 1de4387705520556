package report

import (
	"encoding/json"
	"io"

	"github.com/pkg/errors"
)

// WriteJSON writes a document, indented, with a newline at its end.
func WriteJSON(w io.Writer, doc any) error { return errors.Wrap(encode(w, doc), "JSON result") }

func encode(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// Write writes the document as WriteJSON does.
func (d *Document) Write(w io.Writer) error { return WriteJSON(w, d) }

// Save writes the document to a file in one step: whoever reads the file at any
// time finds a valid document.
func (d *Document) Save(path string) error {
	return errors.Wrap(save(path, func(w io.Writer) error { return encode(w, d) }), "JSON result")
}

// streamed is one line of a stream: a row, or a comparison of two, with what is needed
// to read it alone.
type streamed struct {
	Schema  string  `json:"schema"`
	Command string  `json:"command"`
	Host    *Host   `json:"host,omitempty"`
	Device  *Device `json:"device,omitempty"`
	Row     *Row    `json:"row,omitempty"`
	Ratio   *Ratio  `json:"ratio,omitempty"`
}

// Stream writes one row as one line of JSON.
func (d *Document) Stream(w io.Writer, r *Row) error { return d.stream(w, streamed{Row: r}) }

// StreamRatios writes the comparisons, a line each.
func (d *Document) StreamRatios(w io.Writer) error {
	for i := range d.Ratios {
		if err := d.stream(w, streamed{Ratio: &d.Ratios[i]}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) stream(w io.Writer, s streamed) error {
	s.Schema, s.Command, s.Host, s.Device = d.Schema, d.Command, d.Host, d.Device
	return errors.Wrap(json.NewEncoder(w).Encode(s), "JSON stream")
}
