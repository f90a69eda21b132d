package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// questions asks the person what servers ask in the middle of a call, one after
// another, while the run goes on. A question that ends in another way is taken
// off the terminal.
type questions struct {
	a    *app
	h    *host.Host
	run  string
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	queue   []askedAt                           // what waits for its turn
	open    map[askedAt]context.CancelCauseFunc // what is asked about, and how to stop
	busy    bool                                // somebody is asked
	silence func()                              // ends the listening to what is typed into the run
}

// askedAt is where a question came up: in the run that is followed, or in one that
// it called.
type askedAt struct{ run, step string }

// errTakenOff is why a person is no longer asked.
var errTakenOff = errors.New("the question has ended")

// questions begins to listen to what the person types into the run, and to ask.
func (a *app) questions(ctx context.Context, h *host.Host, run string) *questions {
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
	q.queue = append(q.queue, askedAt{e.Run, e.Step})
	if !q.busy {
		q.busy = true
		q.wg.Go(q.work)
	}
}

// work asks until nothing is left.
func (q *questions) work() {
	q.silence()
	for {
		q.mu.Lock()
		if len(q.queue) == 0 || q.ctx.Err() != nil {
			q.busy, q.silence = false, q.a.listen(q.ctx, q.h, q.run)
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
		case err != nil && errors.Is(context.Cause(ctx), errTakenOff):
			q.a.note("the question has ended without you")
			return nil
		case errors.Is(err, errUndecided):
			q.a.note("the question stays open; answer with: tenon approvals allow %s", at.run+"/"+at.step)
			return nil
		}
		return err
	}
	return nil // somebody was faster
}
