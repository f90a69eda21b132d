package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// place is a position in the answer of a run. It consists of the number of the last stored event before it, and of the
// number of bytes of the current turn's text between that event and the position. spoken says that the answer had text
// before: the text of the next turn is then separated from it.
type place struct {
	seq    uint64
	said   int
	spoken bool
}

// spokenMark ends the ids of places before which the answer had text.
const spokenMark = ".t"

// id returns the id of a server-sent event, RUN:SEQ.BYTES or RUN:SEQ.BYTES.t. A client can continue after an event with
// such an id.
func (p place) id(run string) string {
	id := fmt.Sprintf("%s:%d.%d", run, p.seq, p.said)
	if p.spoken {
		id += spokenMark
	}
	return id
}

// readPlace parses the id of an event.
func readPlace(id string) (run string, p place, err error) {
	run, at, _ := strings.Cut(id, ":")
	at, p.spoken = strings.CutSuffix(at, spokenMark)
	seq, said, _ := strings.Cut(at, ".")
	p.seq, err = strconv.ParseUint(seq, 10, 64)
	if err == nil {
		p.said, err = strconv.Atoi(said)
	}
	if err != nil || p.said < 0 || !strings.HasPrefix(run, "run_") {
		return "", place{}, tenon.Errorf(tenon.CodeInvalid, "'%s' is not the id of an event of /chat/stream",
			tenon.Visible(id))
	}
	return run, p, nil
}

// chatStream answers with a stream of events: text {delta}, tool_start, tool and approval. The last event is done, with
// a ChatResponse, or error {error}.
func (c *call) chatStream() error {
	q, run, after, err := c.beginChat()
	if err != nil {
		return ofChat{err, "", q.SessionID}
	}
	return c.streamChat(q.Message, run, place{seq: after})
}

// chatAgain continues the stream of a run after the event in Last-Event-ID. Without this header, it streams the run in
// ?run= from its first event.
func (c *call) chatAgain() error {
	id, from := c.req.URL.Query().Get("run"), place{}
	if last := c.req.Header.Get("Last-Event-ID"); last != "" {
		run, p, err := readPlace(last)
		if err != nil {
			return err
		}
		if id != "" && id != run {
			return tenon.Errorf(tenon.CodeInvalid, "Last-Event-ID is of run %s, not of '%s'", run, tenon.Visible(id))
		}
		id, from = run, p
	}
	run, err := c.runOf(id)
	if err != nil {
		return err
	}
	c.guest = true
	c.begun(run.ID)
	return c.streamChat(run.Title, run, from)
}

// streamChat streams the answer of a run from a place.
func (c *call) streamChat(message string, run tenon.Run, from place) error {
	calls, err := c.callsBefore(run.ID, from.seq)
	if err != nil {
		return c.unrepeated(run.ID, err)
	}
	s, ok := c.stream(": run " + run.ID + "\n\n")
	if !ok {
		return nil
	}
	p := &pulsing{s: &s, wrote: time.Now()}
	defer p.keepAlive(cmp.Or(c.cfg.Beat, beat))()
	at := from
	send := func(event string, v any) error {
		b, err := encode(v)
		if err != nil {
			return err
		}
		return p.write("id: " + at.id(run.ID) + "\nevent: " + event + "\ndata: " +
			string(c.h.Service().Callers().Mask(b)) + "\n\n")
	}
	f, err := c.follow(run, from.seq, telling{
		at: &at,
		text: func(t string) error {
			return send("text", map[string]string{"delta": t})
		},
		event: func(e tenon.Event) error {
			return c.sendCall(calls, e, func(event string, v any) error {
				at.seq = e.Seq
				return send(event, v)
			})
		},
	})
	if err == nil && len(f.waiting) == 0 {
		err = failure(f)
	}
	switch {
	case err != nil && !c.limited(f, err):
		p, _ := c.problem(ofChat{c.unrepeated(run.ID, err), run.ID, run.Session})
		_ = send("error", chatError(p)) // fails only if the client has disconnected
	case len(f.waiting) > 0:
		_ = send("error", c.waitingChat(f))
	default:
		_ = send("done", chatResponse(ChatRequest{Message: message}, f))
	}
	return nil
}

// ChatCall is the data of the events tool_start, tool and approval of /chat/stream.
type ChatCall struct {
	Name    string `json:"name"`
	Success *bool  `json:"success,omitempty"` // tool: whether the call succeeded
	Step    string `json:"step"`
	Server  string `json:"serverId,omitempty"`
	Outcome string `json:"outcome,omitempty"`  // tool: result, unknown, denied, invalid or failed
	Error   string `json:"error,omitempty"`    // tool: the reason
	ID      string `json:"approval,omitempty"` // approval: the id for POST /api/v1/approvals/{id}/decide
}

// sendCall sends the event of a tool call that begins, ends or needs an approval.
func (c *call) sendCall(calls *view.Run, e tenon.Event, send func(string, any) error) error {
	before, _ := calls.Call(e.Step)
	calls.Apply(e)
	now, ok := calls.Call(e.Step)
	if !ok || e.Seq == 0 {
		return nil
	}
	told := ChatCall{Step: now.Step, Name: now.Name, Server: now.Server}
	switch {
	case e.Kind == agent.EventDecided && now.Verdict == tenon.Ask:
		told.ID = e.Run + "/" + e.Step
		return send("approval", told)
	case now.Attempts > before.Attempts:
		return send("tool_start", told)
	case now.Outcome != before.Outcome && now.Outcome != view.CallOpen:
		told.Success, told.Outcome, told.Error = &now.Success, now.Outcome, now.Error
		return send("tool", told)
	}
	return nil
}

// callsBefore folds the events of a run up to the number seq. Later events of the stream can then be completed with the
// names of their calls.
func (c *call) callsBefore(run string, seq uint64) (*view.Run, error) {
	r := &view.Run{}
	for after := uint64(0); after < seq; {
		events, err := c.h.Runs().Open(run).Journal(c.ctx(), after, int(min(seq-after, lookPage)))
		if err != nil || len(events) == 0 {
			return r, err
		}
		for _, e := range events {
			r.Apply(e)
		}
		after = events[len(events)-1].Seq
	}
	return r, nil
}

// pulsing is a stream with keep-alive comments while nothing else is sent.
type pulsing struct {
	mu    sync.Mutex
	s     *stream
	wrote time.Time
}

func (p *pulsing) write(text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote = time.Now()
	return p.s.write(text)
}

// keepAlive sends a comment after each interval of silence, until the returned function is called.
func (p *pulsing) keepAlive(every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			p.mu.Lock()
			silent := time.Since(p.wrote) >= every
			p.mu.Unlock()
			if silent && p.write(":\n\n") != nil {
				return // the client has gone; the request ends by itself
			}
		}
	}()
	return func() { cancel(); <-done }
}
