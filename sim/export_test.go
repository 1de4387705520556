package sim

import "time"

// SetShare sets how long a doorbell runs NICs; negative: each turn but the first
// is left to a goroutine.
func (f *Fabric) SetShare(d time.Duration) { f.share = d }

// TimerSet reports whether the device's timer is pending.
func (d *Device) TimerSet() bool {
	d.node.mu.Lock()
	defer d.node.mu.Unlock()
	return d.node.timer.at != 0
}
