package b

import "example.org/m/c"

var _ = c.X
