package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// Approval is a tool call that waits for a person.
type Approval struct {
	ID      string `json:"id"` // run and step, as Decide takes them: "RUN/STEP"
	Run     string `json:"run"`
	Step    string `json:"step"`
	Session string `json:"session"`
	Title   string `json:"title,omitempty"` // of the run
	// Expires is when it is taken as denied; zero: it waits for ever.
	Expires time.Time `json:"expires,omitzero"`
	agent.Asking

	Principal tenon.Principal `json:"-"` // whose run it is
}

// Approvals returns what waits for a person, oldest first. What has waited as long as it
// may is not in it: nobody can answer it any more, although its run may not know yet.
func (h *Host) Approvals(ctx context.Context) ([]Approval, error) {
	list := []Approval{}
	since := map[string]time.Time{} // by id
	for _, state := range []tenon.RunState{tenon.RunInputRequired, tenon.RunWorking} {
		runs, err := h.store.Runs(ctx, store.RunFilter{State: state, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			for _, w := range r.Waiting {
				a, err := approvalOf(r, w)
				if err != nil {
					return nil, err
				}
				if a.Kind != agent.AskChild && !h.expired(a) { // the run that was called stands in the list itself
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

// expired reports whether the time is up in which a question could be answered.
func (h *Host) expired(a Approval) bool { return !a.Expires.IsZero() && !h.now().Before(a.Expires) }

func approvalOf(run tenon.Run, w tenon.Waiting) (Approval, error) {
	a := Approval{ID: run.ID + "/" + w.Step, Run: run.ID, Step: w.Step, Session: run.Session, Title: run.Title, Expires: w.Expires, Principal: principalOf(run)}
	if err := json.Unmarshal(w.Data, &a.Asking); err != nil {
		return a, tenon.Errorf(tenon.CodeStore, "run %s: what it waits for cannot be read: %w", run.ID, err)
	}
	return a, nil
}

// Awaited returns what a run waits for, and in its place where that is a run that it
// called, what that one waits for; like Approvals nothing that has expired.
func (h *Host) Awaited(ctx context.Context, run string) ([]Approval, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	var list []Approval
	for _, w := range row.Waiting {
		a, err := approvalOf(row, w)
		if err != nil {
			return nil, err
		}
		if a.Kind != agent.AskChild {
			if !h.expired(a) {
				list = append(list, a)
			}
			continue
		}
		more, err := h.Awaited(ctx, a.Asking.Run)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// Decide answers what a run waits for at a step and returns the event that won,
// which is another's if somebody was faster: see [Host.Settle].
func (h *Host) Decide(ctx context.Context, run, step string, r agent.Ruling) (tenon.Event, error) {
	won, _, err := h.Settle(ctx, run, step, r)
	return won, err
}

// Settle answers what a run waits for at a step. It returns the event that won, and
// whether that is the caller's own. A run at rest goes on with Resume; one that is
// under way goes on by itself.
//
// For a tool call the ruling allows or denies it; edited arguments are held to
// the tool's schema first. Where a server asks for input, Arguments are the
// content of the answer, held to the form, or, for several forms at once, an
// object of contents by the keys of the requests; Deny declines. At a limit, and
// where a server asks for an answer of the model, it says yes or no. Errors:
// not_found, conflict (it does not wait for this), invalid (the verdict, the arguments),
// store.
//
// What is allowed for the session or for good is allowed for the other calls that
// wait for the same tool in this session, too, with the arguments that they have.
func (h *Host) Settle(ctx context.Context, run, step string, r agent.Ruling) (won tenon.Event, mine bool, err error) {
	if r.Verdict != tenon.Allow && r.Verdict != tenon.Deny {
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeInvalid, "the verdict about step %s of run %s has to be %s or %s, not '%s'", step, run, tenon.Allow, tenon.Deny, tenon.Visible(string(r.Verdict)))
	}
	r.By = cmp.Or(r.By, string(tenon.PrincipalLocal))
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return tenon.Event{}, false, err
	}
	s := engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: agent.EventDecision, Step: step, By: r.By, Data: encode(r)}
	var asked agent.Asking
	if i := slices.IndexFunc(row.Waiting, func(w tenon.Waiting) bool { return w.Step == step }); i >= 0 {
		if err := json.Unmarshal(row.Waiting[i].Data, &asked); err != nil {
			return tenon.Event{}, false, tenon.Errorf(tenon.CodeStore, "run %s: what it waits for cannot be read: %w", run, err)
		}
	}
	switch {
	case asked.Kind == "" && strings.Contains(step, "/"): // a question that has ended: the engine knows how
		s.Kind, s.Data = agent.EventAnswer, encode(agent.Answer{By: r.By})
	case asked.Kind == agent.AskInput:
		a, err := h.answerFor(ctx, run, asked, r)
		if err != nil {
			return tenon.Event{}, false, err
		}
		s.Kind, s.Data = agent.EventAnswer, encode(a)
	case asked.Kind == agent.AskSampling && len(r.Arguments) > 0:
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeInvalid, "the model answers here: there are no arguments to edit")
	case len(r.Arguments) > 0:
		if err := h.checkEdit(ctx, run, step, r.Arguments); err != nil {
			return tenon.Event{}, false, err
		}
	}
	if won, err = h.engine.Signal(ctx, run, s); err != nil {
		return won, false, err
	}
	if mine = won.Kind == s.Kind && bytes.Equal(won.Data, s.Data); mine && asked.Kind == agent.AskApproval && r.Verdict == tenon.Allow && r.Remember != "" {
		if err = h.keepGrant(ctx, principalOf(row), asked, r); err == nil {
			err = h.settleLike(ctx, row.Session, asked, r)
		}
	}
	return won, mine, err
}

// settleLike allows the other calls of a session that wait for a tool which was just
// allowed for the session: whoever calls it, each with a decision of its own.
func (h *Host) settleLike(ctx context.Context, session string, asked agent.Asking, r agent.Ruling) error {
	var runs []tenon.Run
	for _, state := range []tenon.RunState{tenon.RunInputRequired, tenon.RunWorking} {
		list, err := h.store.Runs(ctx, store.RunFilter{Session: session, State: state, Limit: maxListed})
		if err != nil {
			return err
		}
		runs = append(runs, list...)
	}
	like := agent.Ruling{Verdict: tenon.Allow, By: r.By + " (for the session)"}
	for _, row := range runs {
		for _, w := range row.Waiting {
			a, err := approvalOf(row, w)
			if err != nil {
				return err
			}
			if a.Kind != agent.AskApproval || a.Server != asked.Server || a.Remote != asked.Remote {
				continue
			}
			s := engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: agent.EventDecision, Step: w.Step, By: like.By, Data: encode(like)}
			if _, err := h.engine.Signal(ctx, row.ID, s); err != nil && tenon.ErrorCode(err) != tenon.CodeConflict { // else it has ended
				return err
			}
		}
	}
	return nil
}

func (h *Host) checkEdit(ctx context.Context, run, step string, args json.RawMessage) error {
	s, err := h.state(ctx, run)
	if err != nil {
		return err
	}
	c, _, ok := s.Step(step)
	if !ok {
		return tenon.Errorf(tenon.CodeConflict, "run %s does not wait at step %s", run, step)
	}
	snapshot, err := h.snapshot(ctx, s.Spec().Tools)
	if err != nil {
		return err
	}
	c.Arguments, c.Malformed = args, ""
	if err := snapshot.CheckEdited(&c); err != nil {
		return err
	}
	t, ok := snapshot.Lookup(c.Name)
	if !ok {
		return nil // CheckEdited has found it
	}
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return err
	}
	if o := h.law().rules.Judge(h.facts(row, s.View().State, t, args)); o.Verdict == tenon.Deny {
		return tenon.Errorf(tenon.CodeDenied, "a call with these arguments is denied by policy: %s", o.Reason)
	}
	return nil
}

// answerFor makes a person's answer to a server's requests for input: forms get
// their content, URLs that the person has agreed, and the model answers where the
// person said so.
func (h *Host) answerFor(ctx context.Context, run string, asked agent.Asking, r agent.Ruling) (*agent.Answer, error) {
	a := &agent.Answer{By: r.By, Reason: r.Reason}
	requests, err := readRequests(asked.Requests)
	if err != nil {
		return nil, err
	}
	forms, err := readForms(requests)
	if err != nil {
		return nil, err
	}
	contents := map[string]json.RawMessage{}
	if len(forms) > 1 && len(r.Arguments) > 0 && r.Verdict == tenon.Allow {
		if err := json.Unmarshal(r.Arguments, &contents); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the server asks with %d forms: answer with an object of contents by their keys (%s): %w",
				len(forms), strings.Join(slices.Sorted(maps.Keys(forms)), ", "), err)
		}
	}
	out := map[string]json.RawMessage{}
	for key, q := range requests {
		form, isForm := forms[key]
		switch {
		case q.Method == agent.MethodSample:
			if r.Verdict != tenon.Allow {
				// The protocol has no word for it: the call ends here.
				return &agent.Answer{By: r.By, Reason: r.Reason, Error: denied(r)}, nil
			}
			s, err := h.sampleModel(ctx, run, asked.Server, q.Params)
			if err != nil {
				return nil, err
			}
			out[key] = responseOf(s)
			a.Model, a.Usage, a.Cost = s.Model, sum(a.Usage, s.Usage), total(a.Cost, s.Cost)
		case r.Verdict != tenon.Allow:
			out[key] = encode(declined)
		case !isForm:
			out[key] = encode(map[string]string{"action": "accept"})
		default:
			content := contents[key]
			if len(forms) == 1 {
				content = r.Arguments
			}
			if content, err = form.Fill(content); err != nil {
				return nil, err
			}
			out[key] = encode(map[string]any{"action": "accept", "content": content})
		}
	}
	a.Responses = encode(out)
	return a, nil
}

// readForms returns the forms among the requests; URLs are none.
func readForms(requests map[string]inputRequest) (map[string]Form, error) {
	forms := map[string]Form{}
	for key, q := range requests {
		if q.Method != methodElicit {
			continue
		}
		f, err := ParseForm(q.Params)
		if err != nil {
			return nil, err
		}
		if f.Mode == ModeForm {
			forms[key] = f
		}
	}
	return forms, nil
}
