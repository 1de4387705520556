package b

import "time"

func run() { go Core(time.Duration(time.Now().UnixNano()), nil) }
