package ps

// gamma is SplitMix64's step between values of a sequence: 2^64 / the golden ratio,
// made odd.
const gamma = 0x9e3779b97f4a7c15

// InitialValue gives value i of a row before its first Push: uniform in [-scale,
// scale), the same on every machine.
func InitialValue(seed, key uint64, i int, scale float32) float32 {
	return initialRow(seed, key).value(i, scale)
}

// rowSeed is where a row's sequence begins.
type rowSeed uint64

func initialRow(seed, key uint64) rowSeed { return rowSeed(Hash(key ^ Hash(seed+gamma))) }

func (r rowSeed) value(i int, scale float32) float32 {
	// 24 bits and a power of two are exact in float32: the one product rounds.
	// Adding 0 makes the -0 of a scale of 0 a 0: x+0 is x for every other x.
	u := Hash(uint64(r) + uint64(i)*gamma)
	return float32(float32(int32(u>>40)-1<<23)*(1.0/(1<<23))*scale) + 0
}
