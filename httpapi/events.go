package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
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
func (a *api) events(w http.ResponseWriter, req *http.Request) error {
	after, err := lastEvent(req)
	if err != nil {
		return err
	}
	run, err := a.row(req)
	if err != nil {
		return err
	}
	if run.State.Ended() && after >= run.Seq {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	dialog, err := a.h.Dialog(req.Context(), run.ID, after)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := stream{http.NewResponseController(w), w}
	if req.Method == http.MethodHead || s.write(": run "+run.ID+"\n\n") != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	type item struct {
		e   tenon.Event
		err error
	}
	items := make(chan item)
	go func() {
		defer close(items)
		for e, err := range a.h.Events(ctx, run.ID, after) {
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
				text = "event: problem\ndata: " + string(b) + "\n\n"
			default:
				b, err := encode(i.e)
				if err != nil {
					return nil // cannot be: it came out of the journal
				}
				text = eventText(i.e, b)
			}
		case <-time.After(beat):
			text = ":\n\n"
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
	if text == "" {
		text = req.URL.Query().Get("after")
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
