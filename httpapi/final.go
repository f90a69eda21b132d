package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// final is an error of a request whose run has taken effect, or may still do so. Clients must not repeat such a
// request. The status of the error is 424, because neither the SDKs of OpenAI and Anthropic nor the usual HTTP
// libraries repeat a request after it. They repeat requests after 408, 409, 425, 429 and 5xx. A refused sign-in remains
// 403.
type final struct {
	err error
	run string
}

func (f final) Error() string { return f.err.Error() }
func (f final) Unwrap() error { return f.err }

const (
	// headerRun names the run to which an answer belongs.
	headerRun = "Tenon-Run"
	// headerRetry, with the value false, tells the SDKs of OpenAI and Anthropic not to repeat a request.
	headerRetry = "X-Should-Retry"
)

const (
	// lookTime bounds the search for effects of a run whose request failed.
	lookTime = 5 * time.Second
	// lookPage is the number of events that the search reads at a time.
	lookPage = 512
)

// begun names the run of a request in the header of the answer.
func (c *call) begun(run string) { c.w.Header().Set(headerRun, run) }

// unrepeated returns the error of a request that waited for a run. The error is a [final] one if a repeated request
// could repeat effects. If err is nil, unrepeated returns nil.
func (c *call) unrepeated(run string, err error) error {
	if err == nil {
		return nil
	}
	if c.ctx().Err() != nil && errors.Is(context.Cause(c.ctx()), ErrStopping) {
		err = ErrStopping // the cause of the cancellation
	}
	if c.mayRepeat(run) {
		return err
	}
	return final{err, run}
}

// unanswered is an error of a call that waits, with what it waits for.
type unanswered struct {
	err  error
	list []host.Approval
}

func (u unanswered) Error() string { return u.err.Error() }
func (u unanswered) Unwrap() error { return u.err }

// uncalled is unrepeated for a tool call. If the call waits for a person, the error has the approvals with the ids that
// decide them. The users of commands have the error with their commands.
func (c *call) uncalled(run string, err error) error {
	if tenon.ErrorCode(err) != tenon.CodeWaiting {
		return c.unrepeated(run, err)
	}
	all, listing := c.h.Approvals().List(c.ctx(), run)
	all = slices.DeleteFunc(all, func(a host.Approval) bool { return !c.mine(a.Principal) })
	if listing != nil || len(all) == 0 { // decided in the meantime
		return c.unrepeated(run, err)
	}
	if !c.cfg.CommandLine && c.req.Header.Get(headerClient) != commandLine {
		ids := make([]string, len(all))
		for i, a := range all {
			ids[i] = a.ID
		}
		err = tenon.Errorf(tenon.CodeWaiting, "the call waits for a decision, or for what a server asks; answer with "+
			"POST /api/v1/approvals/{id}/decide, the slash of the id as %%2F, id %s; the call then continues: "+
			"GET /api/v1/runs/%s", strings.Join(ids, ", "), run)
	}
	return unanswered{c.unrepeated(run, err), all}
}

// mayRepeat reports whether a repeated request cannot repeat effects. This is so only if the run has ended by itself
// and no tool call was started. A run that has not ended may still take effect. A cancelled run must not be repeated
// either, because it was not wanted.
func (c *call) mayRepeat(run string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), lookTime)
	defer cancel()
	row, err := c.h.Runs().Get(ctx, run)
	if err != nil || !row.State.Ended() || row.State == tenon.RunCancelled {
		return false
	}
	called, err := c.called(ctx, run)
	return err == nil && !called
}

// called reports whether a tool call of the run was started. Such a call may have taken effect.
func (c *call) called(ctx context.Context, run string) (bool, error) {
	for after := uint64(0); ; {
		events, err := c.h.Runs().Open(run).Journal(ctx, after, lookPage)
		if err != nil || len(events) == 0 {
			return false, err
		}
		if slices.ContainsFunc(events, func(e tenon.Event) bool {
			return e.Kind == tenon.EventStarted && tenon.ParseStep(e.Step).Call != ""
		}) {
			return true, nil
		}
		after = events[len(events)-1].Seq
	}
}

// limited reports whether a limit ended the run after the model had answered, or after the run may have taken effect.
// Such a request is answered with the text so far. If a budget refused a run before the first answer, the request fails
// with an error.
func (c *call) limited(f followed, err error) bool {
	if err == nil || f.Error == nil || f.Error.Code != tenon.CodeLimit {
		return false
	}
	return f.Stop == tenon.StopMaxTokens || f.said != "" || f.Tokens().Output > 0 || !c.mayRepeat(f.Run)
}

// key returns the Idempotency-Key of the request, prefixed with the caller so that principals do not share keys. It is
// empty if the request has none.
func (c *call) key() (string, error) {
	key := c.req.Header.Get("Idempotency-Key")
	if len(key) > maxKey || !utf8.ValidString(key) {
		return "", tenon.Errorf(tenon.CodeInvalid, "Idempotency-Key must be UTF-8 of at most %d bytes", maxKey)
	}
	if key == "" {
		return "", nil
	}
	return string(c.caller.Principal) + "/" + key, nil
}

// join starts a run for the caller, or finds the run of an earlier request. An earlier request is one with the same
// Idempotency-Key, or the attempt that an SDK gave up before it repeated the request. The answer consists of the events
// of the run after the number after. join resumes a run that failed before any tool call, for example because its model
// was not reachable. With steer, a session at work gets the question as a message into its run.
func (c *call) join(q host.Question, steer bool) (run tenon.Run, after uint64, err error) {
	key, err := c.key()
	if err != nil {
		return run, 0, err
	}
	again := false
	if id := c.attemptBefore(); id != "" && key == "" {
		again = true
		run, err = c.runOf(id)
		if err == nil && !run.State.Ended() {
			err = c.give(id)
		}
	} else {
		var started host.Started
		started, after, err = c.ask(key, q, steer)
		run, again = started.Run, started.Again
	}
	if err != nil {
		return run, 0, err
	}
	c.guest = c.guest || after > 0 // the client that began the run decides about it
	c.begun(run.ID)
	if again {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
	if !again || after > 0 {
		return run, after, nil
	}
	if run.State != tenon.RunFailed || !c.mayRepeat(run.ID) {
		return run, 0, nil
	}
	if err := c.give(run.ID); err != nil {
		return run, 0, err
	}
	after = run.Seq
	err = c.h.Runs().Resume(c.ctx(), run.ID)
	if tenon.ErrorCode(err) == tenon.CodeConflict { // another request has resumed it
		err = nil
	}
	return run, after, err
}

// failFinal sets the headers that keep clients from repeating a request.
func (c *call) failFinal(p Problem) {
	if p.Run != "" {
		c.begun(p.Run)
	}
	if p.Status == http.StatusFailedDependency || p.Status == http.StatusConflict {
		c.w.Header().Set(headerRetry, "false")
	}
}

var (
	_ error = final{}
	_ error = unanswered{}
)
