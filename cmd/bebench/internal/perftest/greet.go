package perftest

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
)

const (
	// version is what we say we are: that of Debian 12's package (configure.ac of
	// 4.5-0.17), older than 6.28.
	version = "6.06"
	// oldest is the least version that this exchange fits; perftest refuses older
	// ones too (check_version_compatibility).
	oldest = 5.70
	// versionBytes is MAX_VERSION of perftest_parameters.h.
	versionBytes = 16
	// maxPage bounds what a peer may ask for, in bytes. Linux's longest page is of
	// 64 KiB.
	maxPage = 1 << 20
)

// ErrVersion is wrapped when the peer's perftest is too old, or none.
var ErrVersion = errors.New("not a version of perftest that we know")

// Host is what two ends agree on before they make queue pairs.
type Host struct {
	PageBytes      int // short messages cycle through so many bytes of a buffer
	CacheLineBytes int // and lie at multiples of this
	MTU            qp.MTU
}

// Hello exchanges versions and gives the peer's.
func (c *Conn) Hello() (string, error) {
	mine := make([]byte, versionBytes)
	copy(mine, version)
	peer, err := c.swap("version", mine)
	if err != nil {
		return "", err
	}
	v, err := parseVersion(peer)
	return v, c.fail("version", err)
}

func parseVersion(b []byte) (string, error) {
	text, _, _ := bytes.Cut(b, []byte{0})
	v := string(text)
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || len(text) == len(b) {
		return "", errors.WithMessagef(ErrVersion, "the peer sent %q", b)
	}
	if !(n >= oldest) { // NaN is refused too
		return "", errors.WithMessagef(ErrVersion, "the peer has %s, and %.2f is the oldest that works: install a newer one there", v, oldest)
	}
	return v, nil
}

// Agree exchanges page, cache line and MTU, and gives what both ends use: the
// greater ones, and the lesser MTU.
func (c *Conn) Agree(mine Host) (Host, error) {
	agreed := mine
	for _, s := range []struct {
		step string
		n    *int
	}{{"page", &agreed.PageBytes}, {"line", &agreed.CacheLineBytes}} {
		b, err := c.swap(s.step, binary.BigEndian.AppendUint32(nil, uint32(*s.n)))
		if err != nil {
			return agreed, err
		}
		peer := binary.BigEndian.Uint32(b)
		if peer == 0 || peer > maxPage {
			return agreed, c.fail(s.step, errors.Errorf("the peer sent %d bytes, want 1 to %d", peer, maxPage))
		}
		*s.n = max(*s.n, int(peer))
	}
	b, err := c.swap("mtu", []byte{'0' + byte(mine.MTU), 0})
	if err != nil {
		return agreed, err
	}
	peer := qp.MTU(b[0] - '0')
	if peer.Bytes() == 0 || b[1] != 0 {
		return agreed, c.fail("mtu", errors.Errorf("the peer sent %q, want a digit from 1 to 5 and a 0 byte", b))
	}
	agreed.MTU = min(mine.MTU, peer)
	return agreed, nil
}
