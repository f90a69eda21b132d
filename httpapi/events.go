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
	run, err := c.run()
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
	s, ok := c.stream(": run " + run.ID + "\n\n")
	if !ok {
		return nil
	}
	ctx, cancel := context.WithCancel(c.ctx())
	type item struct {
		e   tenon.Event
		err error
	}
	items := make(chan item)
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
	for {
		text := ""
		select {
		case i, ok := <-items:
			switch {
			case !ok:
				return nil
			case i.err != nil:
				p, _ := problem(i.err)
				b, _ := encode(p) // our own type
				text = "event: problem\ndata: " + string(c.h.Masked(b)) + "\n\n"
			default:
				b, err := encode(i.e)
				if err != nil {
					return nil // cannot be: it came out of the journal
				}
				text = eventText(i.e, c.h.Masked(b))
			}
		case <-time.After(beat):
			text = ":\n\n"
		case <-c.ctx().Done():
			_ = s.write(stopping) // to whoever is still there
			return nil
		}
		if s.write(text) != nil {
			return nil // the client has gone
		}
	}
}

func eventText(e tenon.Event, data []byte) string {
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
	s = stream{http.NewResponseController(c.w), c.w}
	return s, c.req.Method != http.MethodHead && s.write(first) == nil
}

type stream struct {
	c *http.ResponseController
	w http.ResponseWriter
}

func (s stream) write(text string) error {
	if err := s.c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.c.Flush()
}
