package be

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// The versions of the protocol that this code speaks, both included.
const (
	minVersion = 1
	maxVersion = 1
)

const (
	protocolName = "byteexpress"
	maxHello     = 64 << 10 // bytes of one hello
)

// incarnation identifies one node from its start to its end: 128 random bits.
type incarnation [16]byte

func newIncarnation() (id incarnation) {
	rand.Read(id[:])
	return id
}

func (id incarnation) less(o incarnation) bool { return string(id[:]) < string(o[:]) }

// String is the incarnation in hexadecimal.
func (id incarnation) String() string { return hex.EncodeToString(id[:]) }

// MarshalText makes it hexadecimal.
func (id incarnation) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (id *incarnation) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(id[:], b[:min(len(b), 2*len(id))]); err != nil || n != len(id) || len(b) != 2*n {
		return fmt.Errorf("incarnation %q is not 32 hexadecimal digits", b)
	}
	return nil
}

// refusal says in a hello why the sender does not go on.
type refusal struct {
	Code string `json:"code"` // "version", "self", "lane", "exists", "setup", "path", "gid_type"
	Text string `json:"text"`
}

// hello is what each side tells the other first. The version range stands first,
// so that any version can read it.
type hello struct {
	Protocol    string      `json:"protocol"`
	MinVersion  int         `json:"min_version"`
	MaxVersion  int         `json:"max_version"`
	Incarnation incarnation `json:"incarnation"`
	Listener    uint32      `json:"listener,omitempty"`  // the listening side's number for the dialed address
	Lane        int         `json:"lane,omitempty"`      // the sender's worker, below maxWorkers
	PeerLane    int         `json:"peer_lane,omitempty"` // of the dialing side: which worker of the other, modulo its number of them
	Workers     int         `json:"workers,omitempty"`   // of the sender; 0: it knows no pairs, and lane is of both sides
	Refused     *refusal    `json:"refused,omitempty"`

	Device       string    `json:"device"`
	Port         int       `json:"port"`
	LinkLayer    string    `json:"link_layer"`
	GID          verbs.GID `json:"gid"`
	GIDType      string    `json:"gid_type"`
	GIDTypes     []string  `json:"gid_types,omitempty"` // that the sender has, best first; of a refusal too
	LID          uint16    `json:"lid"`
	MTU          int       `json:"mtu_bytes"`
	QPNum        uint32    `json:"qp_num"`
	PSN          uint32    `json:"psn"`
	RecvDepth    int       `json:"recv_depth"`
	RecvMost     int       `json:"recv_most,omitempty"` // receives that the sender may grant at a time; 0: recv_depth
	Eager        int       `json:"eager_bytes"`
	Fragment     int       `json:"fragment_bytes"`
	MaxMessage   int64     `json:"max_message_bytes"`
	Backlog      int       `json:"backlog"`
	MaxSockets   int       `json:"max_sockets"`
	MaxReads     int       `json:"max_reads"`
	Expect       int       `json:"expect_bytes,omitempty"` // of a large message, for which the sender has room when it answers RTS; 0: it does not count
	TrafficClass int       `json:"traffic_class"`
	ServiceLevel int       `json:"service_level"`
	Features     []string  `json:"features"` // what the sender knows beyond the version; others are ignored
}

// The features. What belongs to one is used only if both hellos have it.
const (
	featureUnordered = "unordered" // OPEN with wire.FlagUnordered
	featureGet       = "get"       // RTS with wire.FlagGet, FIN
	featurePublish   = "publish"   // WRITE_WITH_IMM to a wire.Token
	featureTags      = "tags"      // wire.Token.Tag
	featureLend      = "lend"      // more than recv_depth receives granted, RECALL, RETURN
	featurePack      = "pack"      // PACK
)

// features are those of a node.
func (c *Config) features() []string {
	all := []string{featureUnordered, featureGet, featurePublish, featureTags, featureLend}
	if c.PackBytes > 0 {
		all = append(all, featurePack)
	}
	return all
}

// has reports whether both sides know a feature.
func (h *hello) has(own *hello, feature string) bool {
	return slices.Contains(h.Features, feature) && slices.Contains(own.Features, feature)
}

// tag is the base of those of tokens that the sender publishes on this engine.
func (h *hello) tag() uint32 {
	return binary.LittleEndian.Uint32(h.Incarnation[:]) ^ h.PSN<<8 ^ h.QPNum
}

// ready ends the bootstrap: the sender's queue pair is up, or it says why not.
type ready struct {
	Incarnation incarnation `json:"incarnation"` // of the sender
	Peer        incarnation `json:"peer"`        // whom it means
	Error       string      `json:"error,omitempty"`
}

// writeFrame sends v as JSON behind its length: 4 bytes, little-endian.
func writeFrame(c net.Conn, timeout time.Duration, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.SetWriteDeadline(time.Now().Add(timeout))
	_, err = c.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...))
	return stepCause(err, timeout)
}

// readFrame reads what writeFrame sent. A timeout of 0 is none.
func readFrame(c net.Conn, timeout time.Duration, v any) error {
	if timeout > 0 {
		c.SetReadDeadline(time.Now().Add(timeout))
	}
	return stepCause(decodeFrame(c, v), timeout)
}

// decodeFrame reads one frame.
func decodeFrame(r io.Reader, v any) error {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(prefix[:])
	if n > maxHello {
		return fmt.Errorf("%w: the other side speaks another protocol: it begins with %q, not with a length of at most %d: check address and port", ErrProtocol, prefix[:], maxHello)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: not the expected JSON: %v", ErrProtocol, err)
	}
	return nil
}

func stepCause(err error, timeout time.Duration) error {
	var ne net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &ne) && ne.Timeout():
		if errors.As(err, &op) {
			err = op.Err // who waited for whom is said elsewhere
		}
		return fmt.Errorf("no answer for %v (Config.StepTimeout): %w", timeout, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the other side closed the connection: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// agreed is what follows from both hellos.
type agreed struct {
	global   bool // packets carry a global route header
	mtu      qp.MTU
	eager    int
	fragment int
	message  int
	sockets  int
	reads    int
}

// checkVersion comes first: what else a hello means depends on it.
func (h *hello) checkVersion() error {
	if h.Protocol != protocolName {
		return fmt.Errorf("%w: protocol is %q, want %q: check address and port", ErrProtocol, h.Protocol, protocolName)
	}
	if h.MinVersion > maxVersion || h.MaxVersion < minVersion {
		return fmt.Errorf("%w: the peer speaks %d to %d, this side %d to %d: update the older one", ErrVersion, h.MinVersion, h.MaxVersion, minVersion, maxVersion)
	}
	return nil
}

// commonType is the GID type that both sides have, best first for own; empty if none.
func (h *hello) commonType(own *hello) string {
	for _, t := range own.GIDTypes {
		if slices.Contains(h.GIDTypes, t) {
			return t
		}
	}
	return ""
}

// types lists GID types for people.
func (h *hello) types() string {
	if len(h.GIDTypes) == 0 {
		return h.GIDType
	}
	return strings.Join(h.GIDTypes, " and ")
}

// agree checks the peer's hello against ours and takes the smaller of each value. link
// is our port's.
func (h *hello) agree(own *hello, link verbs.LinkLayer) (a agreed, err error) {
	if h.LinkLayer != own.LinkLayer {
		return a, fmt.Errorf("link layers differ: the peer's %s port %d is %s, our %s port %d is %s", h.Device, h.Port, h.LinkLayer, own.Device, own.Port, own.LinkLayer)
	}
	if h.GIDType != own.GIDType {
		return a, fmt.Errorf("%w: the peer's %v is %s, our %v is %s (the peer's port has %s, ours %s): choose a GID of the same type by Config.GIDIndex, or give both ports one",
			ErrGIDType, h.GID, h.GIDType, own.GID, own.GIDType, h.types(), own.types())
	}
	ours, theirs := verbs.Address{Link: link, LID: own.LID, GID: own.GID}, verbs.Address{Link: link, LID: h.LID, GID: h.GID}
	if a.global, err = ours.Global(theirs); err != nil {
		return a, err
	}
	for _, f := range []struct {
		name     string
		v        int64
		min, max int64
	}{
		{"qp_num", int64(h.QPNum), 0, 1<<24 - 1},
		{"psn", int64(h.PSN), 0, int64(qp.PSNMask)},
		{"recv_depth", int64(h.RecvDepth), minRecvDepth, maxDepth},
		{"recv_most", int64(h.RecvMost), 0, maxShared},
		{"eager_bytes", int64(h.Eager), minEager, 1 << 30},
		{"fragment_bytes", int64(h.Fragment), 256, 1 << 30},
		{"max_message_bytes", h.MaxMessage, 1, 1 << 40},
		{"backlog", int64(h.Backlog), 1, 1 << 20},
		{"max_sockets", int64(h.MaxSockets), 1, 1 << 30},
		{"max_reads", int64(h.MaxReads), 0, 255},
		{"expect_bytes", int64(h.Expect), 0, 1 << 40},
	} {
		if f.v < f.min || f.v > f.max {
			return a, fmt.Errorf("%w: %s of the hello is %d, must be %d to %d", ErrProtocol, f.name, f.v, f.min, f.max)
		}
	}
	mtu, ok := qp.MTUOf(h.MTU)
	if !ok {
		return a, fmt.Errorf("%w: mtu_bytes of the hello is %d, must be 256, 512, 1024, 2048 or 4096", ErrProtocol, h.MTU)
	}
	ownMTU, _ := qp.MTUOf(own.MTU)
	return agreed{
		global: a.global, mtu: min(mtu, ownMTU), eager: min(h.Eager, own.Eager), fragment: min(h.Fragment, own.Fragment),
		message: int(min(h.MaxMessage, own.MaxMessage)), sockets: min(h.MaxSockets, own.MaxSockets), reads: min(h.MaxReads, own.MaxReads),
	}, nil
}
