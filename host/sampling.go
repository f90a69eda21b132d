package host

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/servers"
)

// sample answers a question for the model, after a person has said yes where the
// configuration wants that.
func (q *questioner) sample(ctx context.Context, step string, asked agent.Question) (json.RawMessage, error) {
	refuse := func(err error) (json.RawMessage, error) {
		asked.Verdict, asked.Reason = tenon.Deny, err.Error()
		answer := agent.Answer{By: agent.ByPolicy, Reason: err.Error(), Error: q.h.asError(err)}
		if rerr := q.record(ctx, step, asked, &answer); rerr != nil {
			return nil, rerr
		}
		return nil, err
	}
	cfg := q.config()
	if _, err := readSample(asked.Params, cfg.SamplingLimits.MaxTokens); err != nil {
		return refuse(err)
	}
	_, replayed, err := q.replayed(asked.Method, asked.Params)
	if replayed && err != nil {
		return refuse(err) // as a person did then
	}
	if replayed || cfg.Sampling == servers.AnswerAllow {
		asked.Verdict = tenon.Allow
		if err := q.record(ctx, step, asked, nil); err != nil {
			return nil, err
		}
		return q.answer(ctx, step, asked, "")
	}
	if !q.h.cfg.Attended {
		return refuse(tenon.Errorf(tenon.CodeDenied, "Sampling denied: %s", nobodyHere))
	}
	asked.Verdict = tenon.Ask
	e, err := q.attempt.Journal.Ask(ctx, tenon.Event{Step: step, Data: encode(asked)})
	if err != nil {
		return nil, err
	}
	var r agent.Ruling
	switch {
	case e.Kind != agent.EventDecision || json.Unmarshal(e.Data, &r) != nil:
		return nil, tenon.Errorf(tenon.CodeDenied, "Sampling denied: nobody answered in time")
	case r.Verdict == tenon.Allow:
		return q.answer(ctx, step, asked, r.By)
	}
	no := denied(r)
	if err := q.end(ctx, step, agent.Answer{By: r.By, Reason: r.Reason, Error: no}); err != nil {
		return nil, err
	}
	return nil, no
}

// denied is what a server is told that does not get an answer of the model.
func denied(r agent.Ruling) *tenon.Error {
	if r.Reason != "" {
		return tenon.Errorf(tenon.CodeDenied, "Sampling denied by %s: %s", r.By, r.Reason)
	}
	return tenon.Errorf(tenon.CodeDenied, "Sampling denied by %s", r.By)
}

// answer asks the model and journals what it said.
func (q *questioner) answer(ctx context.Context, step string, asked agent.Question, by string) (json.RawMessage, error) {
	a, err := q.generate(ctx, asked.Params)
	if a.By = by; err != nil {
		a.Error, a.Reason = q.h.asError(err), err.Error()
	}
	if rerr := q.end(ctx, step, a); rerr != nil {
		return nil, rerr
	}
	if err != nil {
		return nil, err
	}
	return responseOf(a), nil
}

// end journals the answer to a question, although the server may have taken the
// question back by now: what was used is used.
func (q *questioner) end(ctx context.Context, step string, a agent.Answer) error {
	return q.attempt.Journal.Record(context.WithoutCancel(ctx), tenon.Event{Step: step, Kind: agent.EventAnswer, Data: encode(a)})
}

// generate has the model answer, within the bounds of the server.
func (q *questioner) generate(ctx context.Context, params json.RawMessage) (agent.Answer, error) {
	limits := q.config().SamplingLimits
	q.mu.Lock()
	q.sampled++
	n := q.sampled + q.command.Round
	q.mu.Unlock()
	if n > limits.PerCall {
		return agent.Answer{}, tenon.Errorf(tenon.CodeLimit, "Sampling denied: %d answers during one call are the limit (servers.%s.sampling_limits.per_call)", limits.PerCall, q.command.Server)
	}
	return q.h.sampleModel(ctx, q.run, q.command.Server, params)
}

// sampleModel has a model answer for a server. Errors: invalid (the request),
// limit (the rate), and those of the model.
func (h *Host) sampleModel(ctx context.Context, run, server string, params json.RawMessage) (agent.Answer, error) {
	config := h.answersOf(server)
	req, err := readSample(params, config.SamplingLimits.MaxTokens)
	if err != nil {
		return agent.Answer{}, err
	}
	if !h.samplings.take(server, config.SamplingLimits.PerMinute, h.now()) {
		return agent.Answer{}, tenon.Errorf(tenon.CodeLimit, "Sampling denied: %d answers a minute are the limit (servers.%s.sampling_limits.per_minute)", config.SamplingLimits.PerMinute, server)
	}
	name := config.SamplingModel
	if name == "" {
		row, err := h.store.Run(ctx, run)
		if err != nil {
			return agent.Answer{}, err
		}
		if name = row.Model; name == "" { // a person's own call has none
			if name, err = h.models.choose(ctx, "", ""); err != nil {
				return agent.Answer{}, err
			}
		}
	}
	m, err := h.models.get(ctx, name)
	if err != nil {
		return agent.Answer{}, err
	}
	h.log.Info("Sending request to provider: "+m.Name(), "run", run, "server", server, "sampling", true)
	r, err := h.generate(ctx, m, req, run, "", func(tenon.Event) {})
	if err != nil {
		return agent.Answer{}, err
	}
	a := agent.Answer{Model: m.Name(), Usage: r.Usage, Cost: r.Cost}
	a.InputAnswer = live(encode(map[string]any{"role": "assistant", "model": m.Name(), "stopReason": stopWord(r.Stop),
		"content": map[string]string{"type": "text", "text": r.Message.Text()}}))
	return a, nil
}

// stopWord is the protocol's word for why a model stopped.
func stopWord(s tenon.StopReason) string {
	if s == tenon.StopMaxTokens || s == tenon.StopContextFull {
		return "maxTokens"
	}
	return "endTurn"
}

// readSample makes a request of the params of sampling/createMessage (2025-11-25).
// What is a wish only (the model, stop sequences, context) is left to us.
func readSample(params json.RawMessage, most int) (*tenon.Request, error) {
	var p struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		SystemPrompt string
		MaxTokens    *float64
		Temperature  *float64
	}
	bad := func(format string, args ...any) error {
		return tenon.Errorf(tenon.CodeInvalid, "the request for sampling is not one of the protocol: "+format, args...)
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, bad("%w", err)
	}
	req := &tenon.Request{System: p.SystemPrompt, MaxTokens: most, Temperature: p.Temperature}
	if p.MaxTokens != nil && *p.MaxTokens >= 1 && *p.MaxTokens < float64(most) {
		req.MaxTokens = int(*p.MaxTokens)
	}
	if req.Temperature != nil && (*req.Temperature < 0 || *req.Temperature > 2) {
		req.Temperature = nil
	}
	for i, in := range p.Messages {
		if in.Role != string(tenon.RoleUser) && in.Role != string(tenon.RoleAssistant) {
			return nil, bad("message %d has the role %q", i+1, clipText(in.Role))
		}
		m := &tenon.Message{Role: tenon.Role(in.Role)}
		blocks := []json.RawMessage{in.Content}
		if len(in.Content) > 0 && in.Content[0] == '[' {
			if err := json.Unmarshal(in.Content, &blocks); err != nil {
				return nil, bad("message %d: %w", i+1, err)
			}
		}
		for _, raw := range blocks {
			var c tenon.Content
			if err := json.Unmarshal(raw, &c); err != nil {
				return nil, bad("message %d: %w", i+1, err)
			}
			switch c.Type {
			case tenon.ContentText:
				m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartText, Text: c.Text})
			case tenon.ContentImage:
				m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartImage, MimeType: c.MimeType, Data: c.Data})
			default:
				return nil, bad("message %d holds content of the kind %q; a model is given text and images", i+1, clipText(c.Type))
			}
		}
		req.Messages = append(req.Messages, m)
	}
	if len(req.Messages) == 0 {
		return nil, bad("it has no messages")
	}
	return req, nil
}

// rates counts what was taken of each server within the last minute. The zero
// value is ready.
type rates struct {
	mu    sync.Mutex
	taken map[string][]time.Time // by server, oldest first, never more than the limit
}

// take counts one more, or reports that the limit is reached.
func (r *rates) take(server string, most int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.taken[server]
	for len(list) > 0 && now.Sub(list[0]) >= time.Minute {
		list = list[1:]
	}
	if len(list) >= most {
		return false
	}
	if r.taken == nil {
		r.taken = map[string][]time.Time{}
	}
	r.taken[server] = append(list, now)
	return true
}

// sum adds usages, of which each may be nil.
func sum(a, b *tenon.Usage) *tenon.Usage {
	if a == nil {
		return b
	}
	all := *a
	all.Add(b)
	return &all
}

// total adds costs, of which each may be nil.
func total(a, b *tenon.USD) *tenon.USD {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return new(*a + *b)
}
