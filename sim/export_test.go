package sim

import (
	"time"

	"github.com/byteexpress/byteexpress/verbs"
)

// SetShare sets how long a doorbell runs NICs; negative: each turn but the first
// is left to a goroutine.
func (f *Fabric) SetShare(d time.Duration) { f.share = d }

// TimerSet reports whether the device's timer is pending.
func (d *Device) TimerSet() bool {
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	return d.node.timer.at != 0
}

// HoldEvents stops whoever has an event for the context, until release is called.
func HoldEvents(c verbs.Context) (release func()) {
	mu := &c.(*Context).events.mu
	mu.Lock()
	return mu.Unlock
}

// InTurn reports whether the device's NIC runs and has emptied its inbox.
func (d *Device) InTurn() bool {
	d.node.inbox.Lock()
	defer d.node.inbox.Unlock()
	return d.node.inbox.busy && len(d.node.inbox.packets) == 0
}
