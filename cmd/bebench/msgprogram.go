package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/exit"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/report"
)

// program is a transport that another program measures.
type program struct{ name, path string }

// parsePrograms reads the values of --also.
func parsePrograms(also []string) (all []program, err error) {
	for _, s := range also {
		name, path, ok := strings.Cut(s, "=")
		if !ok || name == "" || path == "" {
			return nil, exit.Usagef("--also %q: want NAME=PROGRAM", s)
		}
		all = append(all, program{name, path})
	}
	return all, nil
}

// run has the program make one measurement. It prints a row of bebench's JSON.
func (p *program) run(e *env, op string, size, sockets, depth int, d time.Duration) (*report.Row, error) {
	return p.row(e, op, "--size", strconv.Itoa(size), "--sockets", strconv.Itoa(sockets),
		"--depth", strconv.Itoa(depth), "--seconds", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
}

// echo is run for calls.
func (p *program) echo(e *env, size, outstanding int, d time.Duration) (*report.Row, error) {
	return p.row(e, "echo", "--size", strconv.Itoa(size), "--outstanding", strconv.Itoa(outstanding),
		"--seconds", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
}

func (p *program) row(e *env, args ...string) (*report.Row, error) {
	cmd := exec.CommandContext(e.soft, p.path, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, e.stderr
	if err := cmd.Run(); err != nil {
		if e.soft.Err() != nil {
			return nil, control.ErrInterrupted
		}
		return nil, errors.Wrapf(err, "run %s", p.path)
	}
	r := new(report.Row)
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		return nil, errors.Wrapf(err, "row of %s", p.path)
	}
	return r, nil
}
