package ps

import "math/bits"

// Hash mixes a key so that every bit depends on all of it: the finaliser of
// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
// OOPSLA 2014, with the constants of Stafford's mix 13). It is a bijection.
func Hash(key uint64) uint64 {
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return key ^ key>>31
}

// ShardOf gives the shard that holds the key's row, of shards in all.
func ShardOf(key uint64, shards int) int { return shardOfHash(Hash(key), shards) }

func shardOfHash(hash uint64, shards int) int {
	high, _ := bits.Mul64(hash, uint64(shards))
	return int(high)
}
