package allocjob

import "time"

// processCPU is not read here.
func processCPU() time.Duration { return 0 }
