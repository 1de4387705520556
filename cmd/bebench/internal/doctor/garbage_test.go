//go:build linux

package doctor

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/inventory"
	"github.com/byteexpress/byteexpress/internal/testhost"
	"github.com/byteexpress/byteexpress/verbs"
)

// garbage is what a file of sysfs or procfs may have instead of what it should.
var garbage = []string{
	"", "\n\n", "-1", "0", "4294967296", "99999999999999999999999", "NaN", "NaN Gb/sec", "Inf Gb/sec", "::::::::", "0-99999999999", ":", "=\nx y=z",
	"\x00\xff\x1b[2J", strings.Repeat("1,", 1<<16), strings.Repeat("x", 1<<17),
}

// A machine in whose files anything stands is reported on: both documents can be
// written, and each check that fails says what mends it.
func TestGarbageInFiles(t *testing.T) {
	// Of the second adapter only the files are known.
	m := healthy(t, testhost.NIC{Name: "mlx5_0"}, testhost.NIC{Name: "mlx5_1", Denied: true})
	m.h.Loop = func(context.Context, verbs.Device) (Loop, error) { return Loop{}, nil }
	before := m.run().Summary
	var files []string
	err := filepath.WalkDir(m.Root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, "/dev/") {
			files = append(files, strings.TrimPrefix(path, m.Root+"/"))
		}
		return err
	})
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		good, err := os.ReadFile(filepath.Join(m.Root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range garbage {
			m.Write(file, bad)
			r := m.run()
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("%s with %.20q: doctor: %v", file, bad, err)
			}
			for _, f := range r.Findings {
				if f.Found == "" || f.Severity != OK && f.Remedy == "" {
					t.Errorf("%s with %.20q: %+v", file, bad, f)
				}
			}
			d := inventory.Collect(m.Verbs)
			if _, err := json.Marshal(d); err != nil {
				t.Errorf("%s with %.20q: devices: %v", file, bad, err)
			}
			if err := d.WriteText(io.Discard, inventory.Why); err != nil {
				t.Errorf("%s with %.20q: devices: %v", file, bad, err)
			}
		}
		m.Write(file, strings.TrimSuffix(string(good), "\n"))
	}
	if r := m.run(); !maps.Equal(r.Summary, before) { // control: all is as before
		t.Errorf("%+v", r.Findings)
	}
}
