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
	"github.com/tenonhq/tenon/host"
)

const (
	// beat is the interval of keep-alive comments in an idle stream.
	beat = 15 * time.Second
	// writeTime is the deadline of one write to a client.
	writeTime = 30 * time.Second
	// aheadEvents is the size of the queue of events that were read and not yet sent.
	aheadEvents = 16
	// maxHeld is the number of bytes after which queued events are no longer combined into one write.
	maxHeld = 64 << 10
)

// events streams the events of a run: the stored events after the number in Last-Event-ID or ?after=, then new ones.
// The id of an event is its number. Live events (pieces of text, progress) have no id. The stream ends when the run
// ends. It also ends when the run waits for a person, after an event of type waiting. If the run has ended and has no
// further events, the answer is 204, so that an EventSource does not reconnect.
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
	dialog, err := host.NewDialog(c.ctx(), c.h.Runs().Open(run.ID), after)
	if err != nil {
		return err
	}
	s, ok := c.stream("")
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(c.ctx())
	items := c.readAhead(ctx, run.ID, after, dialog)
	defer func() {
		cancel()
		for range items { // drains the channel until the goroutine has ended
		}
	}()
	return c.sendEvents(&s, items, run, after)
}

// item is an event of a run, or the error that ended the reading.
type item struct {
	e   tenon.Event
	err error
}

// readAhead reads the events of a run and their chunks in a goroutine, which closes the channel when it ends.
func (c *call) readAhead(ctx context.Context, run string, after uint64, dialog *host.Dialog) <-chan item {
	items := make(chan item, aheadEvents)
	go func() {
		defer close(items)
		for e, err := range c.h.Runs().Events(ctx, run, after) {
			for _, e := range append([]tenon.Event{e}, dialog.Add(e)...) {
				select {
				case items <- item{e, err}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return items
}

// sendEvents writes the events as they come, several in one write if they are queued, until the run or the client ends.
func (c *call) sendEvents(s *stream, items <-chan item, run tenon.Run, after uint64) error {
	pulse := time.NewTicker(beat)
	defer pulse.Stop()
	ended := func() error {
		if c.ctx().Err() != nil {
			s.hold(stopping)
		}
		_ = s.flush() // fails only if the client has disconnected
		return nil
	}
	s.hold(": run " + run.ID + "\n\n")
	if run.Seq > after { // there is a stored event: send it in the same write
		i, ok := <-items
		if !ok {
			return ended()
		}
		s.hold(c.eventText(i.e, i.err))
	}
	for {
		if len(s.held) < maxHeld {
			select { // combine all queued events into one write
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

// toFollow returns the run whose events are requested. If this process works on the run, toFollow does not read its row
// from the store: it suffices to know that the run has events and has not ended.
func (c *call) toFollow() (tenon.Run, error) {
	id := c.req.PathValue("id")
	if who, ok := c.h.Service().Callers().Owner(id); ok && c.mine(who) {
		return tenon.Run{ID: id, Principal: who, State: tenon.RunWorking, Seq: 1}, nil
	}
	return c.run()
}

// eventText formats an event, or the error that ends the stream, as a server-sent event.
func (c *call) eventText(e tenon.Event, err error) string {
	if err != nil {
		p, _ := c.problem(err)
		b, _ := encode(p) // a Problem always encodes
		return "event: problem\ndata: " + string(c.h.Service().Callers().Mask(b)) + "\n\n"
	}
	b, err := encode(e)
	if err != nil {
		return "" // not reached: the event was decoded from the journal
	}
	data := c.h.Service().Callers().Mask(b)
	if e.Seq > 0 {
		return fmt.Sprintf("id: %d\ndata: %s\n\n", e.Seq, data)
	}
	if e.Kind == engine.EventWaiting {
		return fmt.Sprintf("event: waiting\ndata: %s\n\n", data)
	}
	return fmt.Sprintf("event: live\ndata: %s\n\n", data)
}

// lastEvent returns the event number after which a stream begins: Last-Event-ID, ?after= or ?cursor=. The default is 0.
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

// stopping is the last event of a stream when this process shuts down. It makes the client reconnect after a second and
// send the number of the last event that it received.
const stopping = "event: stopping\nretry: 1000\ndata: {}\n\n"

// wantsJSON reports whether the client asks for a page of stored events instead of a stream.
func wantsJSON(req *http.Request) bool {
	return strings.HasPrefix(req.Header.Get("Accept"), "application/json")
}

// eventPage sends a page of stored events as JSON.
func (c *call) eventPage(run string, after uint64) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	events, err := c.h.Runs().Open(run).Journal(c.ctx(), after, limit+1)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK,
		paged(events, limit, func(e tenon.Event) string { return strconv.FormatUint(e.Seq, 10) }))
}

// stream begins an answer of server-sent events, with first as its first bytes. ok is false if no events can follow:
// the method is HEAD, or the client has disconnected.
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
	held []byte // text for the next flush
}

// write sends a text at once.
func (s *stream) write(text string) error {
	s.hold(text)
	return s.flush()
}

// hold buffers a text until the next flush.
func (s *stream) hold(text string) { s.held = append(s.held, text...) }

// flush sends the buffered text.
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
