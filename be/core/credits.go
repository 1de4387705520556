package core

// Count is a number of receives ever posted or consumed on an engine, mod 2^32.
// Compare Counts by Sub only.
type Count uint32

// Sub is the signed distance from d to c.
func (c Count) Sub(d Count) int32 { return int32(c - d) }

// reserve is the number of credits that only CREDIT may use: with it, and at
// least 4 receives a side, whoever holds the peer's newest count can always send
// its own.
const reserve = 1

// Credits keeps both sides' account of one engine's receives. What the peer
// granted bounds what we send; what we posted is what we grant.
type Credits struct {
	granted  Count // the peer's newest count
	consumed Count // receives of the peer that we used up
	limit    int32 // how many the peer can have posted at most

	posted Count // receives that we ever posted
	owed   bool  // posted has grown since we last told
	floor  int8  // credits left to CREDIT
}

// NewCredits starts an account: both sides posted their depth before either was
// ready, and told so in the hello. Without the reserve two sides can starve each
// other; a test shows how.
func NewCredits(peerDepth, ownDepth int, withReserve bool) Credits {
	c := Credits{granted: Count(peerDepth), limit: int32(peerDepth), posted: Count(ownDepth)}
	if withReserve {
		c.floor = reserve
	}
	return c
}

// Balance is how many receives of the peer are free for us.
func (c *Credits) Balance() int { return int(c.granted.Sub(c.consumed)) }

// CanSend reports whether a request that consumes a receive may be prepared.
func (c *Credits) CanSend() bool { return c.granted.Sub(c.consumed) > int32(c.floor) }

// CanCredit reports whether a CREDIT may be prepared: it may use the reserve.
func (c *Credits) CanCredit() bool { return c.granted.Sub(c.consumed) > 0 }

// Consume takes one credit. CanSend or CanCredit was true.
func (c *Credits) Consume() { c.consumed++ }

// GiveBack gives up what is more than keep, besides the credit for the message that
// says so, and says how many credits that are.
func (c *Credits) GiveBack(keep int) int {
	n := max(c.Balance()-1-keep, 0)
	c.consumed += Count(n)
	return n
}

// Learn takes a count that the peer sent. An older or repeated one changes
// nothing. It is false when the peer claims more receives than it has.
func (c *Credits) Learn(granted Count) bool {
	if granted.Sub(c.granted) <= 0 {
		return true
	}
	if granted.Sub(c.consumed) > c.limit {
		return false
	}
	c.granted = granted
	return true
}

// Posted says that n more receives were posted. The peer is now owed the news.
func (c *Credits) Posted(n int) {
	c.posted += Count(n)
	c.owed = true
}

// Owed reports whether the peer has not been told the newest count.
func (c *Credits) Owed() bool { return c.owed }

// Tell gives the count to put into the next message; nothing is owed after.
func (c *Credits) Tell() Count {
	c.owed = false
	return c.posted
}
