package report

import (
	"encoding/json"
	"io"
	"os"

	"github.com/pkg/errors"
)

// WriteJSON writes a document, indented, with a newline at its end.
func WriteJSON(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return errors.Wrap(enc.Encode(doc), "JSON result")
}

// Write writes the document as WriteJSON does.
func (d *Document) Write(w io.Writer) error { return WriteJSON(w, d) }

// partial names the file that is written first, beside the one that is meant.
func partial(path string) string { return path + ".part" }

// CanSave reports whether a file can be written there, before a measurement is
// spent on it.
func CanSave(path string) error {
	f, err := os.Create(partial(path))
	if err != nil {
		return err
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// Save writes the document to a file in one step: whoever reads the file at any
// time finds a valid document.
func (d *Document) Save(path string) error {
	tmp := partial(path)
	f, err := os.Create(tmp)
	if err != nil {
		return errors.Wrap(err, "JSON result")
	}
	err = d.Write(f)
	if closeErr := f.Close(); err == nil {
		err = errors.Wrap(closeErr, "JSON result")
	}
	if err == nil {
		err = errors.Wrap(os.Rename(tmp, path), "JSON result")
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}

// streamed is one line of a stream: a row, or a comparison of two, with what is needed
// to read it alone.
type streamed struct {
	Schema  string  `json:"schema"`
	Command string  `json:"command"`
	Host    *Host   `json:"host"`
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
	s.Schema, s.Command, s.Host, s.Device = d.Schema, d.Command, &d.Host, d.Device
	return errors.Wrap(json.NewEncoder(w).Encode(s), "JSON stream")
}
