package fabric

import "github.com/byteexpress/byteexpress/sim/des"

// With SwitchConfig.PauseQuanta a pause ends by itself, and who wants it to last says so
// again before. Without, it lasts until it is ended: which comes to the same, unless a
// frame that ends it is lost, or who sent it is dead.

// pauseTime is the longest pause that a frame can ask for: 65,535 quanta of 512 bit
// times (IEEE 802.1Qbb).
func (p *port) pauseTime() des.Time { return p.pace.of(65535 * 512 / 8) }

// pauseLater has a pause that the peer was told of renewed when half of it is over.
func (p *port) pauseLater() {
	if p.f.cfg.Switch.PauseQuanta {
		p.renewAt = p.f.k.Now() + p.pauseTime()/2
		p.f.k.At(p.renewAt, p.f.renewKind, p.id, 0)
	}
}

func (p *port) renew() {
	if p.xoff && p.f.k.Now() >= p.renewAt {
		p.sendPause(true)
	}
}

// resumeLater has the pause that was asked for now end by itself.
func (p *port) resumeLater() {
	if p.f.cfg.Switch.PauseQuanta {
		p.pausedTo = p.f.k.Now() + p.pauseTime()
		p.f.k.At(p.pausedTo, p.f.expireKind, p.id, 0)
	}
}

func (p *port) expire() {
	if p.paused && p.f.k.Now() >= p.pausedTo {
		p.setPaused(false)
	}
}
