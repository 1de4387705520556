package stream

import "github.com/byteexpress/byteexpress/verbs"

// What a stand-in for the kernel's connection manager is made of.
type (
	Manager  = manager
	Link     = link
	Requests = requests
	Request  = request
)

// NewOn makes a Net whose connections m makes.
func NewOn(dev verbs.Context, m Manager) *Net { return &Net{dev: dev, cm: m} }

// Resolve gives the addresses that a name stands for.
var Resolve = resolve

// MaxHeld and MostBeyond bound what a side holds.
const (
	MaxHeld    = maxHeld
	MostBeyond = 2 * receives * messageBytes
)
