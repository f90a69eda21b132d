package host

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

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
	agent.Asking
}

// Approvals returns what waits for a person, oldest first.
func (h *Host) Approvals(ctx context.Context) ([]Approval, error) {
	list := []Approval{}
	for _, state := range []tenon.RunState{tenon.RunInputRequired, tenon.RunWorking} {
		runs, err := h.store.Runs(ctx, store.RunFilter{State: state, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			for _, w := range r.Waiting {
				a := Approval{ID: r.ID + "/" + w.Step, Run: r.ID, Step: w.Step, Session: r.Session, Title: r.Title}
				if err := json.Unmarshal(w.Data, &a.Asking); err != nil {
					return nil, tenon.Errorf(tenon.CodeStore, "run %s: what it waits for cannot be read: %w", r.ID, err)
				}
				list = append(list, a)
			}
		}
	}
	slices.SortFunc(list, func(a, b Approval) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// Decide answers what a run waits for at a step and returns the event that won,
// which is another's if somebody was faster. The run goes on with Resume.
//
// For a tool call the ruling allows or denies it; edited arguments are held to
// the tool's schema first. Where a server asks for input, Arguments are the
// content of the answer and Deny declines. At a limit it says whether the run may
// go on. Errors: not_found, conflict (it does not wait for this), invalid (the
// edited arguments), store.
func (h *Host) Decide(ctx context.Context, run, step string, r agent.Ruling) (tenon.Event, error) {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return tenon.Event{}, err
	}
	if i := slices.IndexFunc(row.Waiting, func(w tenon.Waiting) bool { return w.Step == step }); i >= 0 {
		var asked agent.Asking
		if err := json.Unmarshal(row.Waiting[i].Data, &asked); err != nil {
			return tenon.Event{}, tenon.Errorf(tenon.CodeStore, "run %s: what it waits for cannot be read: %w", run, err)
		}
		if asked.Kind == agent.AskInput {
			return h.engine.Signal(ctx, run, engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: agent.EventAnswer,
				Step: step, By: r.By, Data: encode(tenon.InputAnswer{Responses: responses(asked.Requests, r)})})
		}
	}
	if len(r.Arguments) > 0 {
		if err := h.checkEdit(ctx, run, step, r.Arguments); err != nil {
			return tenon.Event{}, err
		}
	}
	return h.engine.Signal(ctx, run, engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: agent.EventDecision,
		Step: step, By: r.By, Data: encode(r)})
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
	return snapshot.CheckEdited(&c)
}

// responses answers each of a server's requests for input (2026-07-28, multi
// round-trip requests): a form with its content, all else with nothing.
func responses(requests json.RawMessage, r agent.Ruling) json.RawMessage {
	var asked map[string]struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(requests, &asked) // what cannot be read is not answered, and the server asks again
	out := make(map[string]any, len(asked))
	for key, q := range asked {
		switch {
		case q.Method == "roots/list":
			out[key] = map[string]any{"roots": []any{}}
		case r.Verdict != tenon.Allow:
			out[key] = map[string]any{"action": "decline"}
		case len(r.Arguments) == 0:
			out[key] = map[string]any{"action": "accept", "content": map[string]any{}}
		default:
			out[key] = map[string]any{"action": "accept", "content": r.Arguments}
		}
	}
	return encode(out)
}
