package doctor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// Schema names the JSON format. Keys may be added to it; none changes its meaning or
// its name.
const Schema = "bebench-doctor/1"

// Severity says how bad a finding is.
type Severity string

// The severities. Only errors make the command fail.
const (
	OK      Severity = "ok"
	Hint    Severity = "hint"    // works; may be faster
	Warning Severity = "warning" // works now; something will not
	Error   Severity = "error"   // does not work
)

// Finding is what one check found on one thing.
type Finding struct {
	Check    string   `json:"check"`             // its name, as "memlock"
	Subject  string   `json:"subject,omitempty"` // "rxe0 port 1"; empty: the machine
	Severity Severity `json:"severity"`
	Found    string   `json:"found"`
	Remedy   string   `json:"remedy,omitempty"` // absent when ok
}

// Report is what a machine's checks found.
type Report struct {
	Schema   string           `json:"schema"`
	Started  string           `json:"started"` // RFC 3339
	Host     report.Host      `json:"host"`
	Peer     string           `json:"peer,omitempty"` // the host that was compared
	Findings []Finding        `json:"findings"`
	Summary  map[Severity]int `json:"summary"` // how many of each severity
}

// NewReport makes an empty report.
func NewReport(now time.Time) *Report {
	return &Report{
		Schema: Schema, Started: now.Format(time.RFC3339), Host: report.ThisHost(), Findings: []Finding{},
		Summary: map[Severity]int{OK: 0, Hint: 0, Warning: 0, Error: 0},
	}
}

func (r *Report) add(f Finding) {
	r.Findings = append(r.Findings, f)
	r.Summary[f.Severity]++
}

// about is a check of one thing.
type about struct {
	r              *Report
	check, subject string
}

func (r *Report) on(check, subject string) about { return about{r, check, subject} }

func (a about) ok(format string, args ...any) {
	a.r.add(Finding{a.check, a.subject, OK, fmt.Sprintf(format, args...), ""})
}

func (a about) bad(s Severity, found, remedy string) {
	a.r.add(Finding{a.check, a.subject, s, found, remedy})
}

// Err is nil, or says how many errors there are.
func (r *Report) Err() error {
	if r.Summary[Error] == 0 {
		return nil
	}
	return fmt.Errorf("doctor: %s", r.count(Error))
}

// count is "1 error" or "2 errors".
func (r *Report) count(s Severity) string {
	n := r.Summary[s]
	if n == 1 {
		return "1 " + string(s)
	}
	return fmt.Sprintf("%d %ss", n, s)
}

// WriteText writes the report for people to w, one line a finding and one for its
// remedy.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Severity, strings.TrimSpace(f.Check+" "+f.Subject), f.Found)
		if f.Remedy != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", f.Remedy)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d ok, %s, %s, %s\n", r.Summary[OK], r.count(Hint), r.count(Warning), r.count(Error))
	return err
}
