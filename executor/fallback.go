package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/model"
)

// askModels sends a prompt to the first of several models. If that model fails for a reason that may not affect
// another model, it tries the next one. Afterwards text contains the streamed text of the last model. askModels
// returns the last model that was asked, without a Model if none was.
func (x *Executor) askModels(ctx context.Context, row tenon.Run, step string, names []string, p *agent.Prompt,
	emit func(tenon.Event), text *streamed) (agent.Answered, Model, error) {
	run := row.ID
	var answer agent.Answered
	var last Model
	var failed error
	for i, name := range names {
		prompt := *p
		prompt.Model = name
		m, err := x.cfg.Models.Open(ctx, &prompt)
		if err == nil {
			var req *tenon.Request
			if req, err = x.cfg.Conversations.Request(ctx, &prompt); err != nil {
				return answer, Model{}, tenon.Errorf(tenon.CodeStore, "%w", err)
			}
			last = m
			var withheld []string
			if req, withheld, err = x.offer(ctx, row, m, p, req); err != nil {
				return answer, Model{}, tenon.Errorf(tenon.CodeStore, "%w", err)
			}
			if m.Upload != nil {
				var notes []string
				req, notes = m.Upload(ctx, req)
				withheld = append(withheld, notes...)
			}
			x.cfg.Logger.Info("Sending request to provider: "+m.Name(), "run", run, "step", step, "tools",
				len(req.Tools))
			var r *tenon.Response
			if r, err = x.generate(ctx, m, req, run, step, emit, text); err == nil {
				answer.Response = *r
				answer.Warnings = append(slices.Clip(r.Warnings), withheld...)
				if i > 0 {
					answer.By = name
				}
				return answer, m, nil
			}
		} else if i == 0 {
			return answer, Model{}, err // the run's own model is misconfigured: report it
		}
		if failed == nil || i == 0 {
			failed = err
		}
		answer.Tried = append(answer.Tried, agent.Tried{Model: name, Error: x.cfg.Redactor.Error(err)})
		if ctx.Err() != nil || i == 0 && !mayFallBack(err) || i == len(names)-1 {
			break
		}
		x.cfg.Logger.Warn("the model gave no answer, another one is asked", "run", run, "step", step, "model", name,
			"next", names[i+1], "error", err.Error())
		text.reset()
		emit(tenon.Event{Step: step, Kind: engine.LiveReset, Data: tenon.EventData(engine.Delta{Kind: tenon.DeltaReset,
			Text: name + ": " + x.cfg.Redactor.Error(err).Message + "; " + names[i+1] + " is asked"})})
	}
	if n := len(answer.Tried); n > 1 {
		err := x.cfg.Redactor.Error(failed)
		text := err.Message
		for _, t := range answer.Tried[1:] {
			text += "; then " + t.Model + ": " + t.Error.Message
		}
		failed = &tenon.Error{Code: err.Code, Message: text, Err: failed}
	}
	return answer, last, failed
}

// mayFallBack reports whether another model may be able to answer: this one is unreachable, fails, or is out of
// quota. If a request or key was refused, a person must correct it instead.
func mayFallBack(err error) bool {
	switch model.KindOf(err) {
	case model.KindUnreachable, model.KindTimeout, model.KindOverload, model.KindRate, model.KindQuota,
		model.KindCutOff, model.KindMalformed:
		return !errors.Is(err, context.Canceled)
	}
	return false
}
