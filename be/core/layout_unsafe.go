package core

import "unsafe"

// Where what is fetched into the cache together lies. In engineRest, the first line of cfg
// follows bulk.
const (
	restBytes  = unsafe.Offsetof((*socketRest)(nil).fragments) // to send
	writeBytes = unsafe.Sizeof((*engineRest)(nil).window)
	cfgAt      = unsafe.Offsetof((*engineRest)(nil).cfg)
	cfgBytes   = unsafe.Offsetof((*Config)(nil).SendDepth)
	statsAt    = unsafe.Offsetof((*engineRest)(nil).stats) + unsafe.Offsetof((*Stats)(nil).Rendezvous)
	statsBytes = unsafe.Offsetof((*Stats)(nil).CreditMessages) - unsafe.Offsetof((*Stats)(nil).Rendezvous)
	heldAt     = unsafe.Offsetof((*engineRest)(nil).held)
	packedAt   = unsafe.Offsetof((*engineRest)(nil).packed)
	heldBytes  = unsafe.Sizeof((*engineRest)(nil).held)
)
