package local

import (
	"testing"

	"github.com/tenonhq/tenon"
)

// Who follows a young run from its beginning gets all of it from the hub; later,
// and after a gap, the store has to be asked.
func TestFollowEarly(t *testing.T) {
	publish := func(to *topic, from, upTo uint64) {
		for seq := from; seq <= upTo; seq++ {
			to.publish(tenon.Event{Seq: seq, Kind: tenon.EventUnknown, Step: "1"})
		}
	}
	for _, tc := range []struct {
		name       string
		from, upTo uint64 // what was published before
		after      uint64
		whole      bool
		queued     int
		base       uint64
	}{
		{"nothing yet", 1, 0, 0, false, 0, 0},
		{"from the first on", 1, 3, 0, true, 3, 0},
		{"some are known", 1, 3, 2, true, 1, 2},
		{"all are known", 1, 3, 3, false, 0, 3},
		{"as many as are kept", 1, maxEarly, 0, true, maxEarly, 0},
		{"too many", 1, maxEarly + 1, 0, false, 0, maxEarly + 1},
		{"a run that was taken over", 5, 7, 0, false, 0, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := &topic{run: "r"}
			publish(to, tc.from, tc.upTo)
			f, base, whole := to.follow(tc.after)
			items, _ := f.take()
			if whole != tc.whole || len(items) != tc.queued || base != tc.base {
				t.Errorf("whole %v, %d events, base %d; want %v, %d, %d", whole, len(items), base, tc.whole, tc.queued, tc.base)
			}
		})
	}
}
