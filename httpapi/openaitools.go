package httpapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// clientResult is a result that the client sends for a call of its tool.
type clientResult struct {
	run, step, text string
	masks           bool // texts are masked in the journal, so results cannot be compared
}

// openCall is a call of the client's tool in an answer. In a stream, Index is set, and the arguments come in pieces.
type openCall struct {
	Index    *int          `json:"index,omitempty"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function *openFunction `json:"function"`
}

type openFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// The id of a call contains its run and step, call_RUN_TURN_INDEX, so that every process can find them. It consists of
// letters, digits and '_', and has at most 40 characters, as providers require of ids in a history.
const (
	callPrefix = "call_"
	runPrefix  = "run_"
)

func callID(run, step string) string {
	s := tenon.ParseStep(step)
	return callPrefix + strings.TrimPrefix(run, runPrefix) + "_" + s.Unit + "_" + s.Call
}

// parseCall returns the run and the step in a call's id. ok is false if the id was not made by tenon.
func parseCall(id string) (run, step string, ok bool) {
	rest, ok := strings.CutPrefix(id, callPrefix)
	f := strings.Split(rest, "_")
	if !ok || len(f) != 3 || f[0] == "" || !isNumber(f[1]) || !isNumber(f[2]) {
		return "", "", false
	}
	return runPrefix + f[0], f[1] + "." + f[2], true
}

func isNumber(s string) bool {
	return s != "" && len(s) < 9 && strings.Trim(s, "0123456789") == ""
}

// clientCalls collects the calls of the client's tools in a run's events.
type clientCalls struct {
	decided map[string]*agent.Decision // by step
	open    map[string]bool
}

// apply applies an event. It reports whether the event is the client's answer to a call.
func (t *clientCalls) apply(e tenon.Event) (answered bool) {
	switch e.Kind {
	case agent.EventDecided:
		if d := view.As[agent.Decision](e); d.IsClients() {
			if t.decided == nil {
				t.decided, t.open = map[string]*agent.Decision{}, map[string]bool{}
			}
			t.decided[e.Step] = &d
		}
	case agent.EventInput:
		if t.decided[e.Step] != nil {
			t.open[e.Step] = true
		}
	case agent.EventAnswer:
		answered = t.decided[e.Step] != nil
	case tenon.EventExpired:
		delete(t.open, e.Step)
	}
	return answered
}

// list returns the open calls, in order.
func (t *clientCalls) list(run string) (calls []openCall) {
	for step := range t.open {
		d := t.decided[step]
		calls = append(calls, openCall{ID: callID(run, step), Type: "function",
			Function: &openFunction{d.Remote, string(d.Arguments)}})
	}
	return inOrder(calls)
}

// callsOf splits the waits of a run into calls of the client and others.
func callsOf(waiting []host.Approval) (calls []openCall, rest []host.Approval) {
	for _, a := range waiting {
		if a.Kind == agent.AskClient {
			calls = append(calls, openCall{ID: callID(a.Run, a.Step), Type: "function",
				Function: &openFunction{a.Remote, string(a.Arguments)}})
		} else {
			rest = append(rest, a)
		}
	}
	return inOrder(calls), rest
}

// inOrder sorts calls in the order in which the model proposed them.
func inOrder(calls []openCall) []openCall {
	slices.SortFunc(calls, func(a, b openCall) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
	return calls
}

// deltas returns the pieces of calls for a stream. For each call, the first piece contains no arguments, and the second
// contains the arguments.
func deltas(calls []openCall) (pieces []openCall) {
	for i, whole := range calls {
		pieces = append(pieces,
			openCall{Index: &i, ID: whole.ID, Type: whole.Type, Function: &openFunction{Name: whole.Function.Name}},
			openCall{Index: &i, Function: &openFunction{Arguments: whole.Function.Arguments}})
	}
	return pieces
}

// recorded contains what the journal records about the client's calls in a run.
type recorded struct {
	clientCalls
	answers map[string]tenon.Event // by step
	said    []string               // messages that were sent to the run
}

func (c *call) recorded(run string) (r recorded, err error) {
	r.answers = map[string]tenon.Event{}
	for after := uint64(0); ; {
		events, err := c.h.Runs().Open(run).Journal(c.ctx(), after, lookPage)
		if err != nil || len(events) == 0 {
			return r, err
		}
		for _, e := range events {
			if r.apply(e) {
				r.answers[e.Step] = e
				delete(r.open, e.Step)
			}
			if e.Kind == agent.EventMessage {
				r.said = append(r.said, view.As[agent.Steer](e).Text)
			}
		}
		after = events[len(events)-1].Seq
	}
}

// deliver passes the results of the client's tools to their run and resumes it. The answer consists of the events after
// the number after. The same request can be repeated at any time, because results that the run already has are not
// passed again. ok is false if the run has ended and the messages contain a new question, which is for another run.
func (c *call) deliver(q *completionRequest) (run tenon.Run, after uint64, ok bool, err error) {
	t := &q.talk
	bad := func(format string, args ...any) (tenon.Run, uint64, bool, error) {
		return run, 0, false, tenon.Errorf(tenon.CodeInvalid, format, args...)
	}
	id := t.results[0].run
	if slices.ContainsFunc(t.results, func(r clientResult) bool { return r.run != id }) {
		return bad("the results at the end of messages belong to several runs")
	}
	if run, err = c.runOf(id); err != nil {
		return run, 0, false, err
	}
	have, err := c.recorded(id)
	switch {
	case err != nil:
		return run, 0, false, err
	case run.State.Ended() && t.question != "" && !slices.Contains(have.said, t.question):
		return run, 0, false, nil
	case run.Agent != q.Model:
		return bad("the results belong to run %s of model '%s', not '%s'", id, run.Agent, tenon.Visible(q.Model))
	case len(t.files) > 0:
		return bad("files cannot follow the results of tools; send them in a later message")
	}
	c.begun(id)
	fresh, after, err := have.check(id, t.results)
	if err != nil {
		return run, 0, false, err
	}
	if len(fresh) == 0 && run.State != tenon.RunFailed {
		c.w.Header().Set("Idempotency-Replayed", "true")
		return run, after, true, c.giveIf(run)
	}
	if err := c.give(id); err != nil {
		return run, 0, false, err
	}
	if len(fresh) == 0 { // the model failed after the results had arrived; try again
		after = run.Seq
		err = c.h.Runs().Resume(c.ctx(), id)
		if tenon.ErrorCode(err) == tenon.CodeConflict { // another request has resumed it
			err = nil
		}
		return run, after, true, err
	}
	if t.question != "" && !slices.Contains(have.said, t.question) {
		// The same request can arrive twice at the same time, so the message has the first result's call as its key.
		_, err := host.SteerOnce(c.ctx(), c.h, id, callID(id, t.results[0].step), t.question,
			string(c.caller.Principal))
		if err != nil {
			return run, 0, false, err
		}
	}
	for _, r := range fresh {
		seq, err := c.send1(r)
		if err != nil {
			return run, 0, false, err
		}
		after = max(after, seq)
	}
	run, err = c.goOn(id)
	return run, after, true, err
}

// giveIf gives a run that has not ended the credentials of the request.
func (c *call) giveIf(run tenon.Run) error {
	if run.State.Ended() {
		return nil
	}
	return c.give(run.ID)
}

// check compares results with the journal. It returns the results that the run does not have yet, and the number of the
// last event that recorded one of the others. Errors: invalid.
func (r *recorded) check(run string, results []clientResult) (fresh []clientResult, after uint64, err error) {
	sent := map[string]bool{}
	for _, one := range results {
		id := callID(one.run, one.step)
		if sent[one.step] {
			return nil, 0, tenon.Errorf(tenon.CodeInvalid, "call '%s' has two results", id)
		}
		sent[one.step] = true
		if e, ok := r.answers[one.step]; ok {
			if !one.is(e) {
				return nil, 0, tenon.Errorf(tenon.CodeInvalid, "call '%s' had another result before, with which the "+
					"run has continued; begin a new conversation", id)
			}
			after = max(after, e.Seq)
			continue
		}
		if !r.open[one.step] {
			return nil, 0, tenon.Errorf(tenon.CodeInvalid, "call '%s' does not wait for a result any more", id)
		}
		fresh = append(fresh, one)
	}
	var missing []string
	for step := range r.open {
		if !sent[step] {
			missing = append(missing, callID(run, step))
		}
	}
	if len(missing) > 0 && len(fresh) > 0 {
		slices.Sort(missing)
		return nil, 0, tenon.Errorf(tenon.CodeInvalid, "the results of these calls are missing: %s",
			strings.Join(missing, ", "))
	}
	return fresh, after, nil
}

// is reports whether an event recorded this result.
func (r *clientResult) is(e tenon.Event) bool {
	var sent map[string]*tenon.Result
	if json.Unmarshal(view.As[agent.Answer](e).Responses, &sent) != nil || sent[agent.QuestionKey] == nil {
		return false
	}
	return r.masks || sent[agent.QuestionKey].Text() == r.text
}

// send1 records a result. It returns the number of the event that records it.
func (c *call) send1(r clientResult) (uint64, error) {
	text, err := encode(r.text)
	if err != nil {
		return 0, tenon.Errorf(tenon.CodeInvalid, "the result cannot be read: %w", err)
	}
	won, _, err := c.h.Approvals().Decide(c.ctx(), r.run, r.step, agent.Ruling{Verdict: tenon.Allow,
		By: string(c.caller.Principal), Arguments: text})
	if err != nil {
		return 0, err
	}
	if won.Kind != agent.EventAnswer || !r.is(won) {
		return 0, tenon.Errorf(tenon.CodeInvalid, "call '%s' ended otherwise before its result arrived",
			callID(r.run, r.step))
	}
	return won.Seq, nil
}

// usageBetween sums the usage of the events of a run after the number after, up to the number until. If until is 0, it
// sums up to the last event. It returns nil if there are model calls among them, and none reported its tokens.
func (c *call) usageBetween(run tenon.Run, after, until uint64) (*tenon.Usage, error) {
	var fold view.Run
	var before view.Report
	for seq := uint64(0); ; {
		events, err := c.h.Runs().Open(run.ID).Journal(c.ctx(), seq, lookPage)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if until > 0 && e.Seq > until {
				events = nil
				break
			}
			fold.Apply(e)
			if seq = e.Seq; seq == after {
				before = fold.Report(run)
			}
		}
		if len(events) == 0 {
			all := fold.Report(run)
			u, b := all.Tokens(), before.Tokens()
			u = tenon.Usage{Input: u.Input - b.Input, Output: u.Output - b.Output,
				CacheRead: u.CacheRead - b.CacheRead, CacheWrite: u.CacheWrite - b.CacheWrite,
				Reasoning: u.Reasoning - b.Reasoning}
			if all.Unmetered > before.Unmetered && u == (tenon.Usage{}) {
				return nil, nil
			}
			return &u, nil
		}
	}
}
