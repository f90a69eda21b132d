package host

import (
	"context"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/model"
)

// askModels asks the model of a prompt, and where that one cannot answer for a reason
// that another one may not have, those that its entry names as fallback, in their
// order. The model is the last one that was asked; without one, nothing was.
func (h *Host) askModels(ctx context.Context, run, step string, p *agent.Prompt, emit func(tenon.Event)) (agent.Answered, opened, error) {
	var answer agent.Answered
	names := append([]string{p.Model}, h.config.Models[p.Model].Fallback...)
	var last opened
	var failed error
	for i, name := range names {
		prompt := *p
		prompt.Model = name
		m, err := h.modelOf(ctx, &prompt)
		if err == nil {
			var req *tenon.Request
			if req, err = h.request(ctx, &prompt); err != nil {
				return answer, opened{}, tenon.Errorf(tenon.CodeStore, "%w", err)
			}
			last = m
			h.log.Info("Sending request to provider: "+m.Name(), "run", run, "step", step, "tools", len(req.Tools))
			var r *tenon.Response
			if r, err = h.generate(ctx, m, req, run, step, emit); err == nil {
				answer.Response = *r
				if i > 0 {
					answer.By = name
				}
				return answer, m, nil
			}
		} else if i == 0 {
			return answer, opened{}, err // the run's own model is wrongly configured: that is to be put right
		}
		if failed == nil || i == 0 {
			failed = err
		}
		answer.Tried = append(answer.Tried, agent.Tried{Model: name, Error: h.asError(err)})
		if ctx.Err() != nil || i == 0 && !mayFallBack(err) || i == len(names)-1 {
			break
		}
		h.log.Warn("the model gave no answer, another one is asked", "run", run, "step", step, "model", name, "next", names[i+1], "error", err.Error())
		emit(tenon.Event{Step: step, Kind: engine.LiveReset, Data: encode(engine.Delta{Kind: tenon.DeltaReset,
			Text: name + ": " + h.asError(err).Message + "; " + names[i+1] + " is asked"})})
	}
	if n := len(answer.Tried); n > 1 {
		err := h.asError(failed)
		text := err.Message
		for _, t := range answer.Tried[1:] {
			text += "; then " + t.Model + ": " + t.Error.Message
		}
		failed = &tenon.Error{Code: err.Code, Message: text, Err: failed}
	}
	return answer, last, failed
}

// mayFallBack reports whether another model may be able to answer: this one is not
// reached, has trouble, or gives no more for now. What the request itself is refused
// for, and a key that is not accepted, are to be put right instead.
func mayFallBack(err error) bool {
	switch model.KindOf(err) {
	case model.KindUnreachable, model.KindTimeout, model.KindOverload, model.KindRate, model.KindQuota, model.KindCutOff, model.KindMalformed:
		return !errors.Is(err, context.Canceled)
	}
	return false
}
