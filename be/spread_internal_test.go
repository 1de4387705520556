package be

import "testing"

// TestPairsTakeTurns: each pair once in a cycle, and no worker of either side twice
// while another one waits, within as many turns as the side has workers.
func TestPairsTakeTurns(t *testing.T) {
	for own := 1; own <= 8; own++ {
		for theirs := 1; theirs <= 8; theirs++ {
			pairs, ours, peers := map[[2]int]int{}, map[int]int{}, map[int]int{}
			for turn := range own * theirs {
				i, j := pairOf(turn, own, theirs)
				pairs[[2]int{i, j}]++
				ours[i]++
				peers[j]++
				if most := turn/own + 1; ours[i] > most {
					t.Fatalf("%d x %d, turn %d: worker %d of ours for the %d. time", own, theirs, turn, i, ours[i])
				}
				if most := turn/theirs + 2; peers[j] > most {
					t.Fatalf("%d x %d, turn %d: worker %d of theirs for the %d. time", own, theirs, turn, j, peers[j])
				}
			}
			if len(pairs) != own*theirs {
				t.Errorf("%d x %d: %d pairs", own, theirs, len(pairs))
			}
		}
	}
}
