package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

const (
	protocol = "bebench"
	// Version is the version of the control protocol. Both ends must have the
	// same: a benchmark compares like with like.
	Version = 1
)

// ErrRefused is wrapped when the two ends do not fit together.
var ErrRefused = errors.New("refused")

// Hello is the first message of both sides.
type Hello struct {
	Protocol string `json:"protocol"`
	Version  int    `json:"version"`
	Command  string `json:"command"` // "write bw"
	// Options holds, by the flag's name, what must be equal at both ends.
	Options map[string]string `json:"options,omitempty"`
	// Refused tells the client why the server will not run the test.
	Refused string `json:"refused,omitempty"`
}

// NewHello makes the hello of this program.
func NewHello(command string, options map[string]string) Hello {
	return Hello{Protocol: protocol, Version: Version, Command: command, Options: options}
}

// Greet is the client's hello step: it tells the server what we want and learns
// whether the server agrees.
func (c *Conn) Greet(mine Hello) error {
	if err := c.Send("hello", mine); err != nil {
		return err
	}
	var peer Hello
	if err := c.Recv("hello", &peer); err != nil {
		return err
	}
	if err := sameProtocol(&peer, &mine); err != nil {
		return c.fail("hello", err)
	}
	if peer.Refused != "" {
		return c.fail("hello", fmt.Errorf("%w: %s", ErrRefused, Printable(peer.Refused)))
	}
	return nil
}

// Welcome is the server's hello step. A client that differs is told why, and the
// error says the same. claim is asked last and may refuse with a reason.
func (c *Conn) Welcome(mine Hello, claim func() (refused string)) error {
	var peer Hello
	if err := c.Recv("hello", &peer); err != nil {
		return err
	}
	err := sameProtocol(&mine, &peer)
	if err == nil {
		err = sameTest(&mine, &peer)
	}
	if err == nil && claim != nil {
		if reason := claim(); reason != "" {
			err = errors.New(reason)
		}
	}
	if err != nil {
		mine.Refused = err.Error()
	}
	if sendErr := c.Send("hello", mine); sendErr != nil {
		return sendErr
	}
	if err != nil {
		return c.fail("hello", fmt.Errorf("%w: %v", ErrRefused, err))
	}
	return nil
}

func sameProtocol(server, client *Hello) error {
	if server.Protocol != protocol || client.Protocol != protocol {
		return ErrNotBebench
	}
	if server.Version != client.Version {
		return errors.Errorf("protocol version: server has %d, client has %d: install the same bebench on both hosts", server.Version, client.Version)
	}
	return nil
}

// sameTest compares the command and every option, and names all that differ with
// both values.
func sameTest(server, client *Hello) error {
	if server.Command != client.Command {
		return errors.Errorf("command: server runs %q, client runs %q", server.Command, client.Command)
	}
	names := maps.Clone(server.Options)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, client.Options)
	var diff []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if s, c := server.Options[name], client.Options[name]; s != c {
			diff = append(diff, fmt.Sprintf("--%s: server has %q, client has %q", name, s, c))
		}
	}
	if len(diff) != 0 {
		return errors.New(strings.Join(diff, "; ") + ": start both with the same options")
	}
	return nil
}
