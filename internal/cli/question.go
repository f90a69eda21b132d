package cli

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// questions asks the person one question after another while the run continues. The questions are requests of servers
// during a call, and approvals of calls while other calls are in progress. A question that is decided elsewhere is
// removed from the terminal.
type questions struct {
	a    *app
	h    desk
	run  string
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	queue   []askedAt                           // questions that have not been asked yet
	open    map[askedAt]context.CancelCauseFunc // the current question, with the function that cancels it
	busy    bool                                // work is running
	idle    chan struct{}                       // closed when work ends
	held    []askedAt                           // calls that need approval; asked when another call starts
	silence func()                              // stops sending typed lines to the run
}

// askedAt is the place of a question: a step of the followed run or of a run that it called.
type askedAt struct{ run, step string }

// errTakenOff is the cause of the cancellation if a question was decided elsewhere or expired.
var errTakenOff = errors.New("the question has ended")

// questions starts to send typed lines to the run and to ask the person.
func (a *app) questions(ctx context.Context, h desk, run string) *questions {
	q := &questions{a: a, h: h, run: run, open: map[askedAt]context.CancelCauseFunc{}}
	q.ctx, q.stop = context.WithCancel(ctx)
	q.silence = a.listen(ctx, h, run)
	return q
}

// end stops asking. Unanswered questions stay open.
func (q *questions) end() {
	q.stop()
	q.wg.Wait()
	q.silence()
}

// finish waits until the person has answered the current questions, or until ctx is done.
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

// see handles an event of a question.
func (q *questions) see(e tenon.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Kind != tenon.EventQuestion {
		if stop := q.open[askedAt{e.Run, e.Step}]; stop != nil {
			stop(errTakenOff)
		}
		return
	}
	if view.As[agent.Question](e).Verdict != tenon.Ask {
		return
	}
	q.add(askedAt{e.Run, e.Step})
}

// add queues a question. The caller holds the mutex.
func (q *questions) add(at askedAt) {
	q.queue = append(q.queue, at)
	if !q.busy {
		q.busy, q.idle = true, make(chan struct{})
		q.wg.Go(q.work)
	}
}

// seeCall handles an event of a tool call. A call that needs approval is asked about as soon as another call starts. If
// all calls wait for approval, the run stops at them, and drive asks.
func (q *questions) seeCall(e tenon.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := askedAt{e.Run, e.Step}
	switch e.Kind {
	case agent.EventDecided:
		if q.a.canAsk() && view.As[agent.Decision](e).Verdict == tenon.Ask {
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

// work asks the queued questions one after the other until the queue is empty.
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

// one asks one question. If nobody can be asked here, it prints the command that answers it.
func (q *questions) one(ctx context.Context, at askedAt) error {
	row, err := q.h.Runs().Get(ctx, at.run)
	if err != nil {
		return err
	}
	for _, w := range row.Waiting {
		asked, ok := view.Asking(w)
		if !ok || w.Step != at.step {
			continue
		}
		if !q.a.canAsk() {
			q.a.tellWaiting(at.run, at.step, asked)
			return nil
		}
		p := host.Approval{Run: at.run, Step: at.step, Asking: asked}
		if asked.Kind == agent.AskApproval { // the listed approval includes a condition to offer
			list, err := q.h.Approvals().List(ctx, at.run)
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(list, func(o host.Approval) bool {
				return o.Run == at.run &&
					o.Step == at.step
			}); i >= 0 {
				p = list[i]
			}
		}
		err := q.a.decideOne(q.ctx, ctx, q.h, p, 0)
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errTakenOff) && asked.Kind == agent.AskApproval:
			return nil // the call was decided, here or elsewhere
		case err != nil && errors.Is(context.Cause(ctx), errTakenOff):
			q.a.note("the question has ended without you")
			return nil
		case errors.Is(err, errUndecided):
			q.a.note("the question stays open; answer with: %s", q.a.again("approvals allow", at.run+"/"+at.step))
			return nil
		}
		return err
	}
	return nil // the question was answered elsewhere
}
