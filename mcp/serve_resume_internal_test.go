package mcp

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// newStreams returns a session without connections.
func newStreams(version string) *httpSession {
	return &httpSession{serverConn: &serverConn{version: version}}
}

// TestResumedStreamAmongMany checks that a session that has its largest number of streams ends the oldest one, and
// never the one that a client opens or resumes.
func TestResumedStreamAmongMany(t *testing.T) {
	s := newStreams(LatestLegacy)
	var all []*eventStream
	for range maxStreams + 1 {
		st, _ := s.follow(t.Context(), "")
		all = append(all, st)
	}
	if all[0].ctx.Err() == nil || slices.ContainsFunc(all[1:], func(st *eventStream) bool { return st.ctx.Err() != nil }) {
		t.Error("not the oldest stream ended, or more")
	}
	again, _ := s.follow(t.Context(), "1-1")
	if again.number != 1 || again.ctx.Err() != nil {
		t.Errorf("stream %d is resumed and ends: %v", again.number, again.ctx.Err())
	}
	if all[1].ctx.Err() == nil || all[2].ctx.Err() != nil || len(s.sent.open) != maxStreams {
		t.Errorf("the second oldest stream does not end; %d are open", len(s.sent.open))
	}
	for _, st := range append(all, again) {
		s.unfollow(st)
	}
	if len(s.sent.open) != 0 {
		t.Errorf("%d streams are open", len(s.sent.open))
	}
}

// TestNoticeOfEndedConnection checks who gets a notification that a connection took after its end: the connection that
// resumed its stream, or else another one of the session, or else the client that resumes it later.
func TestNoticeOfEndedConnection(t *testing.T) {
	got := func(st *eventStream) string {
		select {
		case one := <-st.late:
			return fmt.Sprintf("%d %s", one.stream, one.body)
		default:
			return ""
		}
	}
	for _, closed := range []bool{false, true} { // or replaced by a newer stream
		s := newStreams(LatestLegacy)
		ctx, leave := context.WithCancel(t.Context())
		first, _ := s.follow(ctx, "")
		if one, mine := s.next(first, []byte("a")); !mine || one.stream != 1 {
			t.Errorf("an open connection: %+v, %v", one, mine)
		}
		resumed, _ := s.follow(t.Context(), "1-2")
		if _, mine := s.next(first, []byte("b")); mine || got(resumed) != "1 b" {
			t.Error("the connection that resumed the stream does not get the notification")
		}
		other, _ := s.follow(t.Context(), "")
		leave()
		resumed.cancel() // as if its client had left
		if closed {
			s.unfollow(resumed)
		}
		if _, mine := s.next(resumed, []byte("c")); mine || got(other) != "2 c" {
			t.Errorf("closed %v: the other connection does not get the notification", closed)
		}
		s.unfollow(resumed)
		s.unfollow(other)
		if one, mine := s.next(other, []byte("d")); !mine || one.stream != 2 {
			t.Errorf("no connection is left: %+v, %v", one, mine)
		}
		if _, missed := s.follow(t.Context(), "2-0"); len(missed) == 0 || string(missed[len(missed)-1].body) != "d" {
			t.Errorf("resumed later: %+v", missed)
		}
	}
}

// TestKeptNotices checks the bounds of the notifications that a session keeps.
func TestKeptNotices(t *testing.T) {
	s := newStreams(LatestLegacy)
	st, _ := s.follow(t.Context(), "")
	size := func() (n int) {
		for _, one := range s.sent.list {
			n += len(one.body)
		}
		return n
	}
	for range 3 * maxSent {
		s.next(st, []byte("x"))
	}
	if len(s.sent.list) != maxSent || s.sent.bytes != size() {
		t.Errorf("%d notifications, %d bytes counted as %d", len(s.sent.list), size(), s.sent.bytes)
	}
	if _, missed := s.follow(t.Context(), "1-1"); len(missed) != maxSent || missed[0].number != s.sent.number-maxSent+1 {
		t.Errorf("%d notifications are sent again", len(missed))
	}
	for range maxSent {
		s.next(st, make([]byte, 1<<10))
	}
	if got := size(); got > 32<<10 || got < 31<<10 || s.sent.bytes != got {
		t.Errorf("%d bytes are kept, counted as %d", got, s.sent.bytes)
	}
	s.next(st, make([]byte, 1<<20))
	if len(s.sent.list) != 0 || s.sent.bytes != 0 {
		t.Errorf("%d notifications, %d bytes after one that is too large", len(s.sent.list), s.sent.bytes)
	}
}

// TestFirstEvent checks that only clients of the latest legacy revision get an event without a body.
func TestFirstEvent(t *testing.T) {
	for version, want := range map[string]int{LatestLegacy: 1, "2025-06-18": 0, "2025-03-26": 0} {
		s := newStreams(version)
		if _, missed := s.follow(t.Context(), ""); len(missed) != want {
			t.Errorf("%s: %d first events, want %d", version, len(missed), want)
		}
		st, _ := s.follow(t.Context(), "")
		one, _ := s.next(st, []byte("a"))
		if _, missed := s.follow(t.Context(), fmt.Sprintf("%d-0", st.number)); len(missed) == 0 || missed[len(missed)-1].id() != one.id() {
			t.Errorf("%s: resumed with %v", version, missed)
		}
	}
}
