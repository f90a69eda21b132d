package local

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// TestFollowEarly follows a young run from its beginning. The hub has all events. Later, and after a gap, the
// store must be read.
func TestFollowEarly(t *testing.T) {
	publish := func(to *topic, from, upTo uint64) {
		for seq := from; seq <= upTo; seq++ {
			to.publish(tenon.Event{Seq: seq, Kind: tenon.EventUnknown, Step: "1"})
		}
	}
	for _, tc := range []struct {
		name       string
		from, upTo uint64 // the range published before
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
			items, _ := f.take(nil)
			if whole != tc.whole || len(items) != tc.queued || base != tc.base {
				t.Errorf("whole %v, %d events, base %d; want %v, %d, %d", whole, len(items), base, tc.whole,
					tc.queued, tc.base)
			}
		})
	}
}

// TestFollowAhead follows a step whose end was already read from the store. The hub must not deliver its live
// events, even if the hub delivers the start of the step too.
func TestFollowAhead(t *testing.T) {
	for name, tt := range map[string]struct {
		events []tenon.Event // events of the hub, behind the store
		want   string
	}{
		"the rest of a step": {[]tenon.Event{
			{Kind: engine.LiveDelta, Step: "1"}, {Seq: 3, Kind: tenon.EventUnknown, Step: "1"}}, ""},
		"all of it": {[]tenon.Event{
			{Seq: 2, Kind: tenon.EventStarted, Step: "1"}, {Kind: engine.LiveDelta, Step: "1"},
			{Seq: 3, Kind: tenon.EventUnknown, Step: "1"}}, ""},
		"another attempt": {[]tenon.Event{
			{Seq: 2, Kind: tenon.EventStarted, Step: "1"}, {Kind: engine.LiveDelta, Step: "1"},
			{Seq: 3, Kind: tenon.EventUnknown, Step: "1"},
			{Seq: 4, Kind: tenon.EventStarted, Step: "1"}, {Kind: engine.LiveDelta, Step: "1"}}, "started delta"},
		"another step": {[]tenon.Event{
			{Seq: 2, Kind: tenon.EventStarted, Step: "1"}, {Kind: engine.LiveDelta, Step: "2"}}, "delta"},
	} {
		t.Run(name, func(t *testing.T) {
			to := &topic{run: "r"}
			queue, _, _ := to.follow(1)
			var got []string
			r := &reader{ctx: t.Context(), run: "r", next: 4, base: 1, over: map[string]uint64{"1": 3}, queue: queue,
				yield: func(e tenon.Event, _ error) bool { got = append(got, e.Kind); return true }}
			for _, e := range tt.events {
				queue.push(e)
			}
			queue.look()
			if err := r.listen(nil); err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("told %q, want %q; %v", got, tt.want, err)
			}
		})
	}
}
