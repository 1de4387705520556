package ps

import (
	"bytes"
	"testing"
)

// FuzzBatch: a batch that is taken is written the same again, and answers too; a group
// takes any without harm.
func FuzzBatch(f *testing.F) {
	m := batch{inc: 3, toInc: 9, base: 0, upto: 1, have: 2, haveInc: 9, from: 0, sender: 1}
	b := m.append(nil)
	f.Add(appendEntry(b, entryPush, testPush(requestID{ClientID{1, 2}, 3}, 4)))
	f.Add(appendEntry(b, entryCommit, appendCommit(nil, 5, mapOf(3))))
	f.Add(b)
	f.Add(b[:20])
	r := batchReply{inc: 1, want: 2, granted: true, knows: true}
	f.Add(r.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseBatchReply(b); err == nil {
			if again := r.append(nil); !bytes.Equal(again, b) {
				t.Errorf("%x is %x again", b, again)
			}
		}
		s := newTestShard(t, Config{MaxRows: 64})
		g := newGroup(s, 0, 2, 1<<12, 9, testLease)
		g.joined(0)
		if err := g.reply(1, b, 0); err == nil {
			g.request(nil, 1)
		}
		m, entries, err := parseBatch(b)
		if err != nil {
			return
		}
		again := m.append(nil)
		for rest := entries; len(rest) > 0; {
			var payload []byte
			var kind entryKind
			kind, payload, rest = nextEntry(rest)
			again = appendEntry(again, kind, payload)
		}
		if len(again) != len(b) || !bytes.Equal(again[:batchHeader], b[:batchHeader]) {
			t.Errorf("%x is %x again", b, again)
		}
		if _, err := g.answer(nil, bytes.Clone(b), 1); err == nil && g.log.next-1 < g.count {
			t.Errorf("%d in the log, %d applied", g.log.next-1, g.count)
		}
		g.request(nil, 1)
	})
}
