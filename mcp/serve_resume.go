package mcp

import (
	"context"
	"strconv"
	"strings"
)

// A client of the legacy era can open a broken stream of notifications again with the header Last-Event-ID. It then
// gets what was sent on that stream after this event, and nothing of other streams (2025-11-25, "Resumability and
// Redelivery").

const (
	// maxSent and maxSentBytes bound the sent notifications that a session keeps for clients that resume. There may be
	// 10,000 sessions.
	maxSent, maxSentBytes = 64, 32 << 10
	// maxStreams bounds the streams of notifications of one session. A further one ends the oldest of the others.
	maxStreams = 16
)

// sentEvents are the last events on the streams of a session. The zero value is empty. The session's lock protects
// it.
type sentEvents struct {
	list    []sentEvent
	bytes   int
	number  int                  // of the last event
	streams int                  // number of the last stream
	open    map[int]*eventStream // by number
}

// sentEvent is one event. Its body is nil if it only tells its id.
type sentEvent struct {
	stream, number int
	body           []byte
}

// id returns the id of the event, which names its stream, too.
func (e sentEvent) id() string { return strconv.Itoa(e.stream) + "-" + strconv.Itoa(e.number) }

// parseEventID reads an id of [sentEvent.id].
func parseEventID(id string) (stream, number int, ok bool) {
	a, b, ok := strings.Cut(id, "-")
	stream, err := strconv.Atoi(a)
	number, err2 := strconv.Atoi(b)
	return stream, number, ok && err == nil && err2 == nil && stream > 0 && number >= 0
}

// eventStream is one connection of a stream.
type eventStream struct {
	number int
	ctx    context.Context // ends with its request, and when another connection resumes the stream
	cancel context.CancelFunc
	late   chan sentEvent // what connections that have ended took and did not send
}

// follow opens a stream. If last is the id of an event, it resumes the stream of that event, whose earlier connection
// ends, and missed are the events after it. Otherwise missed tells an id if the client's revision allows it. The caller
// must call unfollow.
func (s *httpSession) follow(request context.Context, last string) (st *eventStream, missed []sentEvent) {
	s.serverConn.mu.Lock()
	primed := s.version == LatestLegacy // older clients may try to read the event as a message
	s.serverConn.mu.Unlock()
	st = &eventStream{late: make(chan sentEvent, maxStreams)}
	st.ctx, st.cancel = context.WithCancel(request)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.sent
	if stream, after, ok := parseEventID(last); ok && stream <= e.streams && after <= e.number {
		st.number = stream
		if other := e.open[stream]; other != nil {
			other.cancel()
		}
		for _, one := range e.list {
			if one.stream == stream && one.number > after {
				missed = append(missed, one)
			}
		}
	} else {
		e.streams++
		st.number = e.streams
	}
	if e.open == nil {
		e.open = map[int]*eventStream{}
	}
	e.open[st.number] = st
	for len(e.open) > maxStreams {
		oldest := 0
		for number := range e.open {
			if number != st.number && (oldest == 0 || number < oldest) {
				oldest = number
			}
		}
		e.open[oldest].cancel()
		delete(e.open, oldest)
	}
	if len(missed) == 0 && primed {
		e.number++
		missed = []sentEvent{{st.number, e.number, nil}}
	}
	return st, missed
}

// unfollow ends a connection of a stream.
func (s *httpSession) unfollow(st *eventStream) {
	st.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent.open[st.number] == st {
		delete(s.sent.open, st.number)
	}
}

// receiver returns the connection that sends a notification which st took from the session: st itself, or if st has
// ended, the connection that resumed its stream, or any other one that is open. If there is none, a client can still
// resume the stream of st.
func (e *sentEvents) receiver(st *eventStream) *eventStream {
	if other := e.open[st.number]; other != nil && other != st {
		return other
	}
	if st.ctx.Err() == nil {
		return st
	}
	for _, other := range e.open {
		if other.ctx.Err() == nil {
			return other
		}
	}
	return st
}

// next gives a notification its id on a stream, and keeps it for a connection that resumes the stream. If st has ended
// and another connection gets the event, mine is false.
func (s *httpSession) next(st *eventStream, b []byte) (one sentEvent, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.sent
	e.number++
	to := e.receiver(st)
	one = sentEvent{to.number, e.number, b}
	e.list, e.bytes = append(e.list, one), e.bytes+len(b)
	for len(e.list) > maxSent || e.bytes > maxSentBytes {
		e.bytes -= len(e.list[0].body)
		e.list[0] = sentEvent{}
		e.list = e.list[1:]
	}
	if to != st {
		select {
		case to.late <- one:
		default: // it has too many already, and can resume again
		}
	}
	return one, to == st
}
