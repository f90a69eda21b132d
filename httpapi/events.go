package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

const (
	// beat is how often a stream says that it is there while nothing happens.
	beat = 15 * time.Second
	// writeTime is how long a client may take to read an event.
	writeTime = 30 * time.Second
	// aheadEvents is how many events may wait to be sent together.
	aheadEvents = 16
	// maxHeld is how many bytes of events are put together, if there are more.
	maxHeld = 64 << 10
)

// events streams a run: what is stored after the event that Last-Event-ID or
// ?after= names, then what comes. The id of an event is its number; live events
// (pieces of text, progress) have none. The stream ends with the run, or when
// the run waits, with a live event of that kind. Of a run that has ended and has
// no more the answer is 204, which tells an EventSource not to come again.
func (c *call) events() error {
	after, err := lastEvent(c.req)
	if err != nil {
		return err
	}
	run, err := c.toFollow()
	if err != nil {
		return err
	}
	if wantsJSON(c.req) {
		return c.eventPage(run.ID, after)
	}
	if run.State.Ended() && after >= run.Seq {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	dialog, err := c.h.Dialog(c.ctx(), run.ID, after)
	if err != nil {
		return err
	}
	s, ok := c.stream("")
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(c.ctx())
	type item struct {
		e   tenon.Event
		err error
	}
	items := make(chan item, aheadEvents)
	go func() {
		defer close(items)
		for e, err := range c.h.Events(ctx, run.ID, after) {
			for _, e := range append([]tenon.Event{e}, dialog.Add(e)...) {
				select {
				case items <- item{e, err}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	defer func() {
		cancel()
		for range items { // until the goroutine has ended
		}
	}()
	pulse := time.NewTicker(beat)
	defer pulse.Stop()
	ended := func() error {
		if c.ctx().Err() != nil {
			s.hold(stopping)
		}
		_ = s.flush() // to whoever is still there
		return nil
	}
	s.hold(": run " + run.ID + "\n\n")
	if run.Seq > after { // goes out with what is stored
		i, ok := <-items
		if !ok {
			return ended()
		}
		s.hold(c.eventText(i.e, i.err))
	}
	for {
		if len(s.held) < maxHeld {
			select { // what is there goes out together
			case i, ok := <-items:
				if !ok {
					return ended()
				}
				s.hold(c.eventText(i.e, i.err))
				continue
			default:
			}
		}
		if s.flush() != nil {
			return nil // the client has gone
		}
		select {
		case i, ok := <-items:
			if !ok {
				return ended()
			}
			s.hold(c.eventText(i.e, i.err))
		case <-pulse.C:
			s.hold(":\n\n")
		case <-c.ctx().Done():
			return ended()
		}
	}
}

// toFollow is the run of a request for its events. Of one that is worked on here the
// row is not read: it has events, and has not ended.
func (c *call) toFollow() (tenon.Run, error) {
	id := c.req.PathValue("id")
	if who, ok := c.h.WorksFor(id); ok && c.mine(who) {
		return tenon.Run{ID: id, Principal: who, State: tenon.RunWorking, Seq: 1}, nil
	}
	return c.run()
}

// eventText is an event, or the error that ends the stream, as it is sent.
func (c *call) eventText(e tenon.Event, err error) string {
	if err != nil {
		p, _ := problem(err)
		b, _ := encode(p) // our own type
		return "event: problem\ndata: " + string(c.h.Masked(b)) + "\n\n"
	}
	b, err := encode(e)
	if err != nil {
		return "" // cannot be: it came out of the journal
	}
	data := c.h.Masked(b)
	if e.Seq > 0 {
		return fmt.Sprintf("id: %d\ndata: %s\n\n", e.Seq, data)
	}
	if e.Kind == engine.EventWaiting {
		return fmt.Sprintf("event: waiting\ndata: %s\n\n", data)
	}
	return fmt.Sprintf("event: live\ndata: %s\n\n", data)
}

// lastEvent is the number after which a stream begins.
func lastEvent(req *http.Request) (uint64, error) {
	text := req.Header.Get("Last-Event-ID")
	for _, key := range []string{"after", "cursor"} {
		if text == "" {
			text = req.URL.Query().Get(key)
		}
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, tenon.Errorf(tenon.CodeInvalid, "'%s' is not the number of an event", text)
	}
	return n, nil
}

// stopping is the last that a stream says when this process is about to end: the
// client comes again with the number of the last event that it had.
const stopping = "event: stopping\nretry: 1000\ndata: {}\n\n"

// wantsJSON reports whether the stored events are wanted as a page, not as a stream.
func wantsJSON(req *http.Request) bool {
	return strings.HasPrefix(req.Header.Get("Accept"), "application/json")
}

// eventPage sends stored events as JSON.
func (c *call) eventPage(run string, after uint64) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	events, err := c.h.Page(c.ctx(), run, after, limit+1)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, paged(events, limit, func(e tenon.Event) string { return strconv.FormatUint(e.Seq, 10) }))
}

// stream begins to send server-sent events. It is not ok where nothing can follow.
func (c *call) stream(first string) (s stream, ok bool) {
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusOK)
	s = stream{c: http.NewResponseController(c.w), w: c.w}
	return s, c.req.Method != http.MethodHead && (first == "" || s.write(first) == nil)
}

type stream struct {
	c    *http.ResponseController
	w    http.ResponseWriter
	held []byte
}

// write sends a text at once.
func (s *stream) write(text string) error {
	s.hold(text)
	return s.flush()
}

// hold keeps a text until the next flush.
func (s *stream) hold(text string) { s.held = append(s.held, text...) }

// flush sends what is held.
func (s *stream) flush() error {
	if len(s.held) == 0 {
		return nil
	}
	b := s.held
	s.held = nil
	if err := s.c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.c.Flush()
}
