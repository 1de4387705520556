package testprocess

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Process is the test binary once more, as a server.
type Process struct {
	t     testing.TB
	env   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  *bufio.Scanner
}

// New gives a process that has name=value in its environment, and is not started. It is
// killed when the test ends.
func New(t testing.TB, name, value string) *Process {
	p := &Process{t: t, env: name + "=" + value}
	t.Cleanup(p.Kill)
	return p
}

// Set has the next Start give another value.
func (p *Process) Set(name, value string) { p.env = name + "=" + value }

// Start starts the process. Its standard input ends when this process does, and it is to
// end then.
func (p *Process) Start() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), p.env)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd, p.said = cmd, bufio.NewScanner(out)
}

// Line waits for the next line that the process prints.
func (p *Process) Line() string {
	p.t.Helper()
	if !p.said.Scan() {
		p.t.Fatalf("the process %s says nothing: %v", p.env, p.cmd.Wait())
	}
	return p.said.Text()
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Kill ends the process without a word, if it runs.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.stdin.Close()
	p.cmd = nil
}
