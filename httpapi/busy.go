package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// The values of [ChatRequest.Busy].
const (
	busyRefuse = "refuse"
	busyQueue  = "queue"
	busySteer  = "steer"
)

// queueBeat is the longest time after which the first queued message of a session checks whether the session is at
// rest. The end of its run is noticed at once.
const queueBeat = 500 * time.Millisecond

// joinBusy is join for a session that may have an unfinished run. busy determines the behaviour in this case.
func (c *call) joinBusy(q host.Question, busy string) (run tenon.Run, after uint64, err error) {
	if busy == busyQueue && q.Session != "" {
		return c.joinQueue(q)
	}
	run, after, err = c.join(q, busy == busySteer)
	if host.IsBusy(err) {
		err = c.waitsFor(q.Session, err)
	}
	return run, after, err
}

// joinQueue is join when the runs of the session have ended, and after the messages that were queued before.
func (c *call) joinQueue(q host.Question) (run tenon.Run, after uint64, err error) {
	s, err := c.mySession(q.Session)
	if err != nil {
		return run, 0, err
	}
	q.Session = s.ID
	known := q
	if known.Key, err = c.key(); err != nil {
		return run, 0, err
	}
	asked, err := host.IsAsked(c.ctx(), c.h, known)
	if err != nil {
		return run, 0, err
	}
	if asked { // nothing is left to wait for
		return c.join(q, false)
	}
	leave, err := c.queues.enter(c.ctx(), s.ID)
	if err != nil {
		return run, 0, c.leftQueue()
	}
	defer leave()
	for {
		run, after, err = c.join(q, false)
		if !host.IsBusy(err) {
			return run, after, err
		}
		s, headErr := c.mySession(q.Session)
		if headErr != nil {
			return run, after, err
		}
		head, headErr := c.runOf(s.Head)
		if headErr != nil {
			return run, after, err
		}
		if head.State == tenon.RunInputRequired { // such a wait can last for days
			return run, 0, tenon.Errorf(tenon.CodeConflict, "run %s of this session waits for an answer of a person, "+
				"so the message was not queued: answer it (GET /api/v1/approvals), then send the message again",
				head.ID)
		}
		owner, ownerErr := c.h.Runs().Open(head.ID).Owner(c.ctx())
		if ownerErr == nil && !head.State.Ended() && !owner.Working && !owner.Served { // nobody will continue it
			return run, after, err
		}
		c.awaitEnd(head)
		if c.ctx().Err() != nil {
			return run, 0, c.leftQueue()
		}
	}
}

// awaitEnd waits until a run ends, but not longer than queueBeat or the request.
func (c *call) awaitEnd(run tenon.Run) {
	ctx, cancel := context.WithTimeout(c.ctx(), cmp.Or(c.queues.beat, queueBeat))
	defer cancel()
	for e, err := range c.h.Runs().Events(ctx, run.ID, run.Seq) {
		if err == nil && e.Kind == tenon.EventDone {
			return
		}
	}
	<-ctx.Done()
}

// leftQueue returns the error for a message whose request ended before its turn.
func (c *call) leftQueue() error {
	if errors.Is(context.Cause(c.ctx()), ErrStopping) {
		return ErrStopping
	}
	return tenon.Errorf(tenon.CodeCancelled, "the client went away before its message was its turn")
}

// queues are the messages that wait for their sessions, in the order of their arrival at this process. Other processes
// of the store have other queues. The gates of requests bound the number of messages.
type queues struct {
	mu   sync.Mutex
	of   map[string][]chan struct{} // by session; the first one is closed
	beat time.Duration              // replaces queueBeat; 0: it does not
}

// enter waits until a message is the first of its session. It stays the first until leave is called. Errors: ctx ended.
func (q *queues) enter(ctx context.Context, session string) (leave func(), err error) {
	turn := make(chan struct{})
	q.mu.Lock()
	if q.of == nil {
		q.of = map[string][]chan struct{}{}
	}
	q.of[session] = append(q.of[session], turn)
	if len(q.of[session]) == 1 {
		close(turn)
	}
	q.mu.Unlock()
	leave = func() { q.leave(session, turn) }
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

func (q *queues) leave(session string, turn chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.of[session]
	first := line[0] == turn
	line = slices.DeleteFunc(line, func(c chan struct{}) bool { return c == turn })
	q.of[session] = line
	switch {
	case len(line) == 0:
		delete(q.of, session)
	case first:
		close(line[0])
	}
}

// waitsFor replaces the error about a session with an unfinished run. If that run waits for an approval, the new error
// says so.
func (c *call) waitsFor(session string, err error) error {
	s, headErr := c.mySession(session)
	if headErr != nil {
		return err
	}
	head, headErr := c.runOf(s.Head)
	if headErr != nil || head.State != tenon.RunInputRequired {
		return err
	}
	list, headErr := c.h.Approvals().List(c.ctx(), head.ID)
	if headErr != nil || len(list) == 0 {
		return err
	}
	return tenon.Errorf(tenon.CodeConflict, "run %s of this session waits: %s", head.ID, waitingText(list))
}

// steer sends a message into a run. With an Idempotency-Key, a repeated request does not send it again.
func (c *call) steer() error {
	var s SteerRequest
	if err := c.decode(&s, false); err != nil {
		return err
	}
	if strings.TrimSpace(s.Text) == "" {
		return tenon.Errorf(tenon.CodeInvalid, "the message is empty")
	}
	run, err := c.run()
	if err != nil {
		return err
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	var e tenon.Event
	if key != "" {
		e, err = host.SteerOnce(c.ctx(), c.h, run.ID, key, s.Text, string(c.caller.Principal))
	} else {
		e, err = c.h.Runs().Steer(c.ctx(), run.ID, s.Text, string(c.caller.Principal))
	}
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, SteerResponse{e.Run, e.Seq})
}
