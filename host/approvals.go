package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/mcp/elicit"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

// Approval is a tool call that waits for a person.
type Approval struct {
	ID      string `json:"id"` // run and step, as Decide takes them: "RUN/STEP"
	Run     string `json:"run"`
	Step    string `json:"step"`
	Session string `json:"session"`
	Title   string `json:"title,omitempty"` // of the run
	// Expires is the time after which the call counts as denied; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	agent.Asking
	// Narrower is a condition that the call fulfils, for a permanent grant of calls like it, or nil if the arguments
	// yield none.
	Narrower *policy.Narrower `json:"narrower,omitempty"`
	// Secrets lists the fields that seem to ask for a secret, by the key of the server's request. A surface warns that
	// the server receives the answers.
	Secrets map[string][]string `json:"secrets,omitempty"`
	// Foreign says that somebody else wrote the run. It is shown and cannot be decided.
	Foreign bool `json:"foreign,omitempty"`

	Principal tenon.Principal `json:"-"` // whose run it is
	Since     time.Time       `json:"-"` // when it began to wait
}

func (h approvalsHandle) List(ctx context.Context, run string) ([]Approval, error) {
	if run != "" {
		return h.host.awaited(ctx, run)
	}
	list := []Approval{}
	since := map[string]time.Time{} // by id
	for _, state := range []tenon.RunState{tenon.RunInputRequired, tenon.RunWorking} {
		runs, err := h.host.store.Runs(ctx, store.RunFilter{State: state, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			for _, w := range r.Waiting {
				a, err := h.host.approvalOf(r, w)
				if err != nil {
					return nil, err
				}
				if a.Kind != agent.AskChild && !h.host.expired(a) { // the called run has its own entries
					list = append(list, a)
					since[a.ID] = w.Since
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Approval) int { // the calls of a turn keep their order
		return cmp.Or(since[a.ID].Compare(since[b.ID]), strings.Compare(a.Run, b.Run))
	})
	return list, nil
}

// expired reports whether the time to answer a question is over.
func (h *Host) expired(a Approval) bool { return !a.Expires.IsZero() && !h.now().Before(a.Expires) }

func unreadableWait(run string) error {
	return tenon.Errorf(tenon.CodeStore, "run %s: the pending question cannot be read", run)
}

// approvalOf makes the approval for what a run waits for.
func (h *Host) approvalOf(run tenon.Run, w tenon.Waiting) (Approval, error) {
	a := Approval{ID: run.ID + "/" + w.Step, Run: run.ID, Step: w.Step, Session: run.Session, Title: run.Title,
		Expires: w.Expires, Principal: run.Owner(), Since: w.Since,
		Foreign: run.Foreign}
	var ok bool
	if a.Asking, ok = view.Asking(w); !ok {
		return a, unreadableWait(run.ID)
	}
	if a.Kind == agent.AskApproval && a.Subject != nil && !a.Foreign {
		a.Narrower = policy.Narrow(a.Arguments, h.folders()...)
	}
	if a.Kind == agent.AskInput {
		a.Secrets = elicit.SecretFields(a.Requests)
	}
	return a, nil
}

// folders returns the folders in which this host works: the project's folder.
func (h *Host) folders() []string {
	if h.config.Dir == "" {
		return nil
	}
	return []string{h.config.Dir}
}

// awaited returns what a run waits for. A called run that it waits for is replaced by what that run waits for.
func (h *Host) awaited(ctx context.Context, run string) ([]Approval, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	var list []Approval
	for _, w := range row.Waiting {
		a, err := h.approvalOf(row, w)
		if err != nil {
			return nil, err
		}
		if a.Kind != agent.AskChild {
			if !h.expired(a) {
				list = append(list, a)
			}
			continue
		}
		more, err := h.awaited(ctx, a.Asking.Run)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func (h approvalsHandle) Decide(ctx context.Context, run, step string, r agent.Ruling) (won tenon.Event, mine bool,
	err error) {
	ctx = store.OwnOnly(ctx)
	if r.Verdict != tenon.Allow && r.Verdict != tenon.Deny {
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeInvalid, "the verdict about step %s of run %s has to be "+
			"%s or %s, not '%s'", step, run, tenon.Allow, tenon.Deny, tenon.Visible(string(r.Verdict)))
	}
	r.By = cmp.Or(r.By, string(tenon.PrincipalLocal))
	row, err := h.host.store.Run(ctx, run)
	if err != nil {
		return tenon.Event{}, false, err
	}
	s := engine.Signal{ID: tenon.NewID("sig", h.host.now()), Kind: agent.EventDecision, Step: step, By: r.By,
		Data: encode(r)}
	var asked agent.Asking
	if i := slices.IndexFunc(row.Waiting, func(w tenon.Waiting) bool { return w.Step == step }); i >= 0 {
		var ok bool
		if asked, ok = view.Asking(row.Waiting[i]); !ok {
			return tenon.Event{}, false, unreadableWait(run)
		}
	}
	question := tenon.ParseStep(step).IsQuestion()
	if asked.Kind == "" && !question {
		won, err = h.host.settled(ctx, row, step)
		return won, err == nil && won.Kind == s.Kind && bytes.Equal(won.Data, s.Data), err
	}
	if err := h.host.checkRemember(&asked, &r); err != nil {
		return tenon.Event{}, false, err
	}
	switch {
	case asked.Kind == "": // the question has ended: the engine reports how
		s.Kind, s.Data = agent.EventAnswer, encode(agent.Answer{By: r.By})
	case len(r.Responses) > 0 && (asked.Kind == agent.AskInput || asked.Kind == agent.AskSampling):
		s.Kind = agent.EventAnswer
		s.Data = encode(agent.Answer{By: r.By, InputAnswer: tenon.InputAnswer{Responses: r.Responses}})
	case asked.Kind == agent.AskClient:
		a, err := clientAnswer(r)
		if err != nil {
			return tenon.Event{}, false, err
		}
		s.Kind, s.Data = agent.EventAnswer, encode(a)
	case asked.Kind == agent.AskInput:
		a, err := h.host.executor.Answer(ctx, run, asked, r)
		if err != nil {
			return tenon.Event{}, false, err
		}
		s.Kind, s.Data = agent.EventAnswer, encode(a)
	case asked.Kind == agent.AskSampling && len(r.Arguments) > 0:
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeInvalid,
			"the model answers here: there are no arguments to edit")
	case len(r.Arguments) > 0:
		if err := h.host.checkEdit(ctx, row, step, r.Arguments); err != nil {
			return tenon.Event{}, false, err
		}
	}
	kept, err := h.host.keepForSession(ctx, row, &asked, &r)
	if err != nil {
		return tenon.Event{}, false, err
	}
	if won, err = h.host.engine.Signal(ctx, run, s); err != nil {
		return won, false, err
	}
	if mine = won.Kind == s.Kind && bytes.Equal(won.Data, s.Data); mine && asked.Kind == agent.AskApproval &&
		r.Verdict == tenon.Allow && r.Remember != "" {
		var g *store.Grant
		if g, err = h.host.keepGrant(ctx, row.Owner(), asked, r); err == nil {
			err = h.host.settleLike(ctx, row.Session, asked, r, g)
		}
	}
	if !mine && kept != "" { // somebody else decided before
		err = errors.Join(err, h.host.store.DeleteSessionGrant(ctx, "", kept))
	}
	return won, mine, err
}

// settled returns the event that decided a step which does not wait any more, such as a decision or an answer that
// another caller sent at the same time. Errors: conflict.
func (h *Host) settled(ctx context.Context, row tenon.Run, step string) (tenon.Event, error) {
	var seq uint64
	for _, kind := range []string{agent.EventDecision, agent.EventAnswer} {
		s, err := h.store.Settled(ctx, row.ID, step, kind)
		switch {
		case err == nil:
			seq = max(seq, s.Seq) // a call can be approved, and then ask for input
		case tenon.ErrorCode(err) != tenon.CodeNotFound:
			return tenon.Event{}, err
		}
	}
	if seq == 0 {
		return tenon.Event{}, tenon.Errorf(tenon.CodeConflict, "run %s (%s) does not wait for step %s", row.ID,
			row.State, step)
	}
	events, err := h.store.Events(ctx, row.ID, seq-1, 1)
	if err == nil && len(events) == 0 {
		err = tenon.Errorf(tenon.CodeStore, "run %s: event %d, which decided step %s, is missing; put back a backup",
			row.ID, seq, step)
	}
	if err != nil {
		return tenon.Event{}, err
	}
	return events[0], nil
}

// settleLike allows the other calls of a session that wait for the same tool, after the tool was allowed for the
// session or by a grant. It records a decision for each call, whichever agent made it.
func (h *Host) settleLike(ctx context.Context, session string, asked agent.Asking, r agent.Ruling,
	g *store.Grant) error {
	var runs []tenon.Run
	for _, state := range []tenon.RunState{tenon.RunInputRequired, tenon.RunWorking} {
		list, err := h.store.Runs(ctx, store.RunFilter{Session: session, State: state, Limit: maxListed})
		if err != nil {
			return err
		}
		runs = append(runs, list...)
	}
	like := agent.Ruling{Verdict: tenon.Allow, By: r.By + " (for the session)"}
	if g != nil {
		like.By = r.By + " (grant " + g.ID + ")"
	}
	for _, row := range runs {
		for _, w := range row.Waiting {
			a, err := h.approvalOf(row, w)
			if err != nil {
				return err
			}
			if row.Foreign || a.Kind != agent.AskApproval || !isLike(&a.Asking, &asked) {
				continue
			}
			if g != nil && r.IsNarrow() {
				ok, err := h.allows(ctx, g, row.ID, w.Step, &policy.Facts{Arguments: a.Arguments})
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
			}
			s := engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: agent.EventDecision, Step: w.Step, By: like.By,
				Data: encode(like)}
			// a conflict means that the run has ended
			if _, err := h.engine.Signal(ctx, row.ID, s); err != nil && tenon.ErrorCode(err) != tenon.CodeConflict {
				return err
			}
		}
	}
	return nil
}

// isLike reports whether two calls are calls of the same tool, of which neither repeats a call with an unknown outcome.
func isLike(a, b *agent.Asking) bool {
	if a.Again || b.Again || a.Server != b.Server || a.Remote != b.Remote || (a.Subject == nil) != (b.Subject == nil) {
		return false
	}
	return a.Subject == nil || *a.Subject == *b.Subject
}

// checkEdit refuses arguments that a person puts in place of the model's. Errors: conflict, denied, invalid.
func (h *Host) checkEdit(ctx context.Context, row tenon.Run, step string, args json.RawMessage) error {
	if row.Core != agent.Version {
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of this call cannot be replaced, because no model chose "+
			"them, but the client or the workflow of run %s; allow or deny the call as it is", row.ID)
	}
	s, err := h.state(ctx, row.ID)
	if err != nil {
		return err
	}
	c, _, ok := s.Step(step)
	if !ok {
		return tenon.Errorf(tenon.CodeConflict, "run %s does not wait at step %s", row.ID, step)
	}
	snapshot, err := h.snapshot(ctx, s.Spec().Tools)
	if err != nil {
		return err
	}
	if c.Connector != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of this call cannot be replaced, because the model's "+
			"provider makes it with the arguments of the model; allow or deny the call as it is")
	}
	c.Arguments, c.Malformed = args, ""
	if err := snapshot.CheckEdited(&c, h.ruleset().Layers.Reads()); err != nil {
		return err
	}
	t, ok := snapshot.Lookup(c.Name)
	if !ok {
		return nil // CheckEdited reports it
	}
	if why := h.protectedBy(t, args); why != "" {
		return tenon.Errorf(tenon.CodeDenied, "a call with these arguments is denied by policy: %s", why)
	}
	f, err := h.facts(ctx, row, s.View().State, t, args)
	if err != nil {
		return err
	}
	if o := h.ruleset().Layers.Judge(f); o.Verdict == tenon.Deny {
		return tenon.Errorf(tenon.CodeDenied, "a call with these arguments is denied by policy: %s", o.Reason)
	}
	return nil
}
