package archon

import (
	"encoding/binary"
	"io"

	"github.com/pkg/errors"
)

// A connection begins with a hello of the dialer,
//
//	 0  4 bytes  "BXTP"
//	 4  u8       version, 1
//	 5  u8       length of the service name, 1 to 255
//	 6  u16      0
//	 8  u32      longest message that the dialer takes
//	12  service name
//
// and a welcome of the listener, of the same first 12 bytes with a result in place
// of the name's length: 0, or why it refuses. Integers are little-endian.
const (
	helloSize    = 12
	helloMagic   = "BXTP"
	helloVersion = 1
	maxService   = 255

	welcomeOK         = 0
	welcomeBadHello   = 1
	welcomeBadVersion = 2
	welcomeFull       = 3
)

type hello struct {
	max     uint32 // longest message that the sender takes
	service string
}

func appendPrelude(b []byte, byte5 uint8, max uint32) []byte {
	b = append(b, helloMagic...)
	b = append(b, helloVersion, byte5, 0, 0)
	return binary.LittleEndian.AppendUint32(b, max)
}

func appendHello(b []byte, h hello) []byte {
	return append(appendPrelude(b, uint8(len(h.service)), h.max), h.service...)
}

// parsePrelude checks the first 12 bytes of a hello or welcome.
func parsePrelude(b []byte) (byte5 uint8, max uint32, err error) {
	switch {
	case len(b) < helloSize:
		return 0, 0, errors.Wrapf(ErrProtocol, "hello of %d bytes, at least %d", len(b), helloSize)
	case string(b[:4]) != helloMagic:
		return 0, 0, errors.Wrapf(ErrProtocol, "hello begins with %q: the peer speaks something else", b[:4])
	case b[4] != helloVersion:
		return 0, 0, errors.Wrapf(errVersion, "version %d, this side speaks %d", b[4], helloVersion)
	case b[6] != 0 || b[7] != 0:
		return 0, 0, errors.Wrap(ErrProtocol, "hello with reserved bytes set")
	}
	max = binary.LittleEndian.Uint32(b[8:])
	if max < minMaxMessage || max > 1<<31-1 {
		return 0, 0, errors.Wrapf(ErrProtocol, "hello with a longest message of %d bytes, must be %d to %d", max, minMaxMessage, 1<<31-1)
	}
	return b[5], max, nil
}

var errFull = errors.New("the listener has as many connections as it may: retry later, or raise its MaxConns")

var errVersion = errors.WithMessage(ErrProtocol, "other protocol version")

// readHello reads the dialer's hello.
func readHello(r io.Reader) (hello, error) {
	var b [helloSize + maxService]byte
	if _, err := io.ReadFull(r, b[:helloSize]); err != nil {
		return hello{}, err
	}
	n, max, err := parsePrelude(b[:helloSize])
	if err != nil {
		return hello{}, err
	}
	if n == 0 {
		return hello{}, errors.Wrap(ErrProtocol, "hello without a service name")
	}
	service := b[helloSize : helloSize+int(n)]
	if _, err := io.ReadFull(r, service); err != nil {
		return hello{}, err
	}
	return hello{max: max, service: string(service)}, nil
}

// readWelcome reads the listener's answer.
func readWelcome(r io.Reader) (max uint32, err error) {
	var b [helloSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	result, max, err := parsePrelude(b[:])
	switch {
	case err != nil:
		return 0, err
	case result == welcomeBadVersion:
		return 0, errors.Wrapf(errVersion, "the listener does not speak version %d", helloVersion)
	case result == welcomeFull:
		return 0, errFull
	case result != welcomeOK:
		return 0, errors.Wrapf(ErrProtocol, "the listener refused the hello with %d", result)
	}
	return max, nil
}
