package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// sample lets the model answer a server's question. If the configuration requires it, a person must agree first.
func (q *questioner) sample(ctx context.Context, step string, asked agent.Question) (json.RawMessage, error) {
	refuse := func(err error) (json.RawMessage, error) {
		asked.Verdict, asked.Reason = tenon.Deny, err.Error()
		answer := agent.Answer{By: agent.ByPolicy, Reason: err.Error(), Error: q.x.cfg.Redactor.Error(err)}
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
		return refuse(err) // a person denied it when the cassette was recorded
	}
	if replayed || cfg.Sampling == servers.AnswerAllow {
		asked.Verdict = tenon.Allow
		if err := q.record(ctx, step, asked, nil); err != nil {
			return nil, err
		}
		return q.answer(ctx, step, asked, "")
	}
	if !q.x.cfg.Interactive && !q.caller.CanAnswer(asked.Method, asked.Params) {
		return refuse(tenon.Errorf(tenon.CodeDenied, "Sampling denied: %s", nobodyHere))
	}
	asked.Verdict = tenon.Ask
	e, err := q.attempt.Journal.Ask(ctx, tenon.Event{Step: step, Data: tenon.EventData(asked)})
	if err != nil {
		return nil, err
	}
	if e.Kind == agent.EventAnswer { // the client's own model answered
		a, err := view.Try[agent.Answer](e)
		if err != nil {
			return nil, err
		}
		return responseOf(a), nil
	}
	r, err := view.Try[agent.Ruling](e)
	switch {
	case err != nil: // another kind
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

// denied returns the error for a server whose request a person denied.
func denied(r agent.Ruling) *tenon.Error {
	if r.Reason != "" {
		return tenon.Errorf(tenon.CodeDenied, "Sampling denied by %s: %s", r.By, r.Reason)
	}
	return tenon.Errorf(tenon.CodeDenied, "Sampling denied by %s", r.By)
}

// answer asks the model and journals its answer.
func (q *questioner) answer(ctx context.Context, step string, asked agent.Question, by string) (json.RawMessage,
	error) {
	a, err := q.generate(ctx, asked.Params)
	a.By = by
	if err != nil {
		a.Error, a.Reason = q.x.cfg.Redactor.Error(err), err.Error()
	}
	if rerr := q.end(ctx, step, a); rerr != nil {
		return nil, rerr
	}
	if err != nil {
		return nil, err
	}
	return responseOf(a), nil
}

// end journals the answer to a question. It does so even if the server has withdrawn the question, because the usage
// counts.
func (q *questioner) end(ctx context.Context, step string, a agent.Answer) error {
	return q.attempt.Journal.Record(context.WithoutCancel(ctx), tenon.Event{Step: step, Kind: agent.EventAnswer,
		Data: tenon.EventData(a)})
}

// generate asks the model, within the sampling limits of the server.
func (q *questioner) generate(ctx context.Context, params json.RawMessage) (agent.Answer, error) {
	limits := q.config().SamplingLimits
	q.mu.Lock()
	q.sampled++
	n := q.sampled + q.command.Round
	q.mu.Unlock()
	if n > limits.PerCall {
		return agent.Answer{}, tenon.Errorf(tenon.CodeLimit,
			"Sampling denied: %d answers during one call are the limit "+
				"(servers.%s.sampling_limits.per_call)", limits.PerCall, q.command.Server)
	}
	return q.x.sampleModel(ctx, q.run, q.command.Server, params)
}

// sampleModel asks a model for a server. Errors: invalid (the request), limit (the rate), errors of the model.
func (x *Executor) sampleModel(ctx context.Context, run, server string, params json.RawMessage) (agent.Answer, error) {
	config := x.cfg.Server(server)
	req, err := readSample(params, config.SamplingLimits.MaxTokens)
	if err != nil {
		return agent.Answer{}, err
	}
	if !x.sampled.take(server, config.SamplingLimits.PerMinute, x.cfg.Now()) {
		return agent.Answer{}, tenon.Errorf(tenon.CodeLimit, "Sampling denied: %d answers a minute are the limit "+
			"(servers.%s.sampling_limits.per_minute)", config.SamplingLimits.PerMinute, server)
	}
	name := config.SamplingModel
	if name == "" {
		row, err := x.cfg.Store.Run(ctx, run)
		if err != nil {
			return agent.Answer{}, err
		}
		if name = row.Model; name == "" { // a person's own call has no model
			if name, err = x.cfg.Models.Default(ctx); err != nil {
				return agent.Answer{}, err
			}
		}
	}
	m, err := x.cfg.Models.Open(ctx, &agent.Prompt{Model: name})
	if err != nil {
		return agent.Answer{}, err
	}
	x.cfg.Logger.Info("Sending request to provider: "+m.Name(), "run", run, "server", server, "sampling", true)
	r, err := x.Generate(ctx, m, req, run, "", func(tenon.Event) {})
	if err != nil {
		return agent.Answer{}, err
	}
	a := agent.Answer{Model: m.Name(), Usage: r.Usage, Cost: r.Cost}
	a.InputAnswer = live(tenon.EventData(map[string]any{"role": "assistant", "model": m.Name(),
		"stopReason": stopWord(r.Stop),
		"content":    map[string]string{"type": "text", "text": r.Message.Text()}}))
	return a, nil
}

// stopWord returns the protocol's stop reason.
func stopWord(s tenon.StopReason) string {
	if s == tenon.StopMaxTokens || s == tenon.StopContextFull {
		return "maxTokens"
	}
	return "endTurn"
}

// readSample converts the params of sampling/createMessage (2025-11-25) to a request. It ignores the preferred model,
// stop sequences and context.
func readSample(params json.RawMessage, most int) (*tenon.Request, error) {
	var p struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		SystemPrompt string   `json:"systemPrompt"`
		MaxTokens    *float64 `json:"maxTokens"`
		Temperature  *float64 `json:"temperature"`
	}
	bad := func(format string, args ...any) error {
		return tenon.Errorf(tenon.CodeInvalid, "the request for sampling is not one of the protocol: "+format, args...)
	}
	if err := exactjson.DecodeOpen(params, &p); err != nil { // the same exact names that surfaces show
		return nil, bad("%w", err)
	}
	req := &tenon.Request{System: p.SystemPrompt, Sampling: tenon.Sampling{MaxTokens: most, Temperature: p.Temperature}}
	if p.MaxTokens != nil && *p.MaxTokens >= 1 && *p.MaxTokens < float64(most) {
		req.MaxTokens = int(*p.MaxTokens)
	}
	if req.Temperature != nil && (*req.Temperature < 0 || *req.Temperature > 2) {
		req.Temperature = nil
	}
	for i, in := range p.Messages {
		if in.Role != string(tenon.RoleUser) && in.Role != string(tenon.RoleAssistant) {
			return nil, bad("message %d has the role %q", i+1, tenon.Shorten(in.Role, 120))
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
				return nil, bad("message %d holds content of the kind %q; a model is given text and images", i+1,
					tenon.Shorten(c.Type, 120))
			}
		}
		req.Messages = append(req.Messages, m)
	}
	if len(req.Messages) == 0 {
		return nil, bad("it has no messages")
	}
	return req, nil
}

// rates counts the answers to each server within the last minute. The zero value is ready to use.
type rates struct {
	mu    sync.Mutex
	taken map[string][]time.Time // times of answers by server, oldest first, at most as many as the limit
}

// take counts an answer. It returns false if the limit is reached.
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

// sum adds two usages. Each may be nil.
func sum(a, b *tenon.Usage) *tenon.Usage {
	if a == nil {
		return b
	}
	all := *a
	all.Add(b)
	return &all
}

// total adds two costs. Each may be nil.
func total(a, b *tenon.USD) *tenon.USD {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}
