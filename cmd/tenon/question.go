package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// questions asks the person, one question after another, while the run goes on: what
// servers ask in the middle of a call, and whether a call may run while others are
// under way. A question that ends in another way is taken off the terminal.
type questions struct {
	a    *app
	h    desk
	run  string
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	queue   []askedAt                           // what waits for its turn
	open    map[askedAt]context.CancelCauseFunc // what is asked about, and how to stop
	busy    bool                                // somebody is asked
	idle    chan struct{}                       // closed when nobody is asked any more
	held    []askedAt                           // calls that wait for a person, and for what to ask about them
	silence func()                              // ends the listening to what is typed into the run
}

// askedAt is where a question came up: in the run that is followed, or in one that
// it called.
type askedAt struct{ run, step string }

// errTakenOff is why a person is no longer asked.
var errTakenOff = errors.New("the question has ended")

// questions begins to listen to what the person types into the run, and to ask.
func (a *app) questions(ctx context.Context, h desk, run string) *questions {
	q := &questions{a: a, h: h, run: run, open: map[askedAt]context.CancelCauseFunc{}}
	q.ctx, q.stop = context.WithCancel(ctx)
	q.silence = a.listen(ctx, h, run)
	return q
}

// end stops asking; what was not answered stays open.
func (q *questions) end() {
	q.stop()
	q.wg.Wait()
	q.silence()
}

// finish waits for the person's answer to what is being asked, or for the end of ctx.
func (q *questions) finish(ctx context.Context) {
	q.mu.Lock()
	busy, idle := q.busy, q.idle
	q.mu.Unlock()
	if busy {
		select {
		case <-idle:
		case <-ctx.Done():
		}
	}
}

// isBusy reports whether the terminal belongs to a question.
func (q *questions) isBusy() bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy
}

// see takes an event of a question.
func (q *questions) see(e tenon.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Kind != tenon.EventQuestion {
		if stop := q.open[askedAt{e.Run, e.Step}]; stop != nil {
			stop(errTakenOff)
		}
		return
	}
	var asked agent.Question
	if json.Unmarshal(e.Data, &asked) != nil || asked.Verdict != tenon.Ask {
		return
	}
	q.add(askedAt{e.Run, e.Step})
}

// add has something asked when its turn comes. The mutex is held.
func (q *questions) add(at askedAt) {
	q.queue = append(q.queue, at)
	if !q.busy {
		q.busy, q.idle = true, make(chan struct{})
		q.wg.Go(q.work)
	}
}

// seeCall takes an event of a tool call. A call that waits for a person is asked about
// as soon as another one is under way; where all of them wait the run comes to rest,
// and whoever follows it asks.
func (q *questions) seeCall(e tenon.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := askedAt{e.Run, e.Step}
	switch e.Kind {
	case agent.EventDecided:
		var d agent.Decision
		if q.a.canAsk() && json.Unmarshal(e.Data, &d) == nil && d.Verdict == tenon.Ask {
			q.held = append(q.held, at)
		}
	case agent.EventDecision, tenon.EventExpired:
		q.held = slices.DeleteFunc(q.held, func(h askedAt) bool { return h == at })
		q.queue = slices.DeleteFunc(q.queue, func(h askedAt) bool { return h == at })
		if stop := q.open[at]; stop != nil {
			stop(errTakenOff)
		}
	case tenon.EventStarted:
		for _, h := range q.held {
			q.add(h)
		}
		q.held = nil
	}
}

// work asks until nothing is left.
func (q *questions) work() {
	q.silence()
	for {
		q.mu.Lock()
		if len(q.queue) == 0 || q.ctx.Err() != nil {
			q.busy, q.silence = false, q.a.listen(q.ctx, q.h, q.run)
			close(q.idle)
			q.mu.Unlock()
			return
		}
		at := q.queue[0]
		q.queue = q.queue[1:]
		ctx, stop := context.WithCancelCause(q.ctx)
		q.open[at] = stop
		q.mu.Unlock()
		if err := q.one(ctx, at); err != nil && q.ctx.Err() == nil {
			q.a.note("tenon: %s", err)
		}
		q.mu.Lock()
		delete(q.open, at)
		q.mu.Unlock()
		stop(nil)
	}
}

// one asks one question, or says how it can be answered from elsewhere.
func (q *questions) one(ctx context.Context, at askedAt) error {
	row, err := q.h.RunRow(ctx, at.run)
	if err != nil {
		return err
	}
	for _, w := range row.Waiting {
		var asked agent.Asking
		if w.Step != at.step || json.Unmarshal(w.Data, &asked) != nil {
			continue
		}
		if !q.a.canAsk() {
			q.a.tellWaiting(at.run, at.step, asked)
			return nil
		}
		err := q.a.decideOne(q.ctx, ctx, q.h, at.run, at.step, asked, 0)
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errTakenOff) && asked.Kind == agent.AskApproval:
			return nil // it was decided, by the person a moment ago or by somebody else
		case err != nil && errors.Is(context.Cause(ctx), errTakenOff):
			q.a.note("the question has ended without you")
			return nil
		case errors.Is(err, errUndecided):
			q.a.note("the question stays open; answer with: %s", q.a.again("approvals allow", at.run+"/"+at.step))
			return nil
		}
		return err
	}
	return nil // somebody was faster
}
