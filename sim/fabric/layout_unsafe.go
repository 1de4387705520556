package fabric

import "unsafe"

// Where what is fetched into the cache together lies.
const (
	hopBytes = unsafe.Sizeof((*frame)(nil).hop)
	wayBytes = unsafe.Offsetof((*flow)(nil).react) + 1

	// headBytes of a frame are the hop and what is in the headers of its packet.
	headBytes = unsafe.Offsetof((*frame)(nil).pkt) + unsafe.Offsetof((*frame)(nil).pkt.Payload)
)
