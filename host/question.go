package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/patience"
	"github.com/tenonhq/tenon/servers"
)

// What a server asks for (MCP; package mcp has the same names for the wire).
const (
	methodElicit = "elicitation/create"
	methodRoots  = "roots/list"
)

// Bounds of what one call may ask for.
const (
	maxQuestions = 50 // of one attempt, while it runs
	maxRounds    = 10 // of requests for input, in the modern era
	maxRequests  = 16 // of one round
)

// nobodyHere is why a question is declined in a process in which nobody answers.
const nobodyHere = "nobody is there to answer: this process has no terminal, and was not told to wait"

// questioner answers what a server asks during one attempt of a call.
type questioner struct {
	h       *Host
	run     string
	attempt *engine.Attempt
	command *agent.ToolCommand
	limit   *patience.Limit // of the call; stands still while a question is open

	mu      sync.Mutex
	asked   int
	sampled int
}

// config says what the server may ask. Most calls ask nothing.
func (q *questioner) config() servers.Config { return q.h.answersOf(q.command.Server) }

// ask answers one question of a server. See [tenon.Call.Ask].
func (q *questioner) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	defer q.limit.Pause()()
	step, err := q.next()
	if err != nil {
		return nil, err
	}
	clean, err := q.clean(params)
	if err != nil {
		return nil, err
	}
	asked := agent.Question{Method: method, Params: clean}
	q.h.log.Info("MCP server asks", "run", q.run, "step", step, "server", q.command.Server, "method", method)
	if method == agent.MethodSample {
		return q.sample(ctx, step, asked)
	}
	form, err := ParseForm(params)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	if result, ok, err := q.replayed(method, params); ok {
		if err != nil {
			return nil, err
		}
		asked.Verdict = tenon.Allow
		return result, q.record(ctx, step, asked, byReplay(result))
	}
	if !q.h.cfg.Attended {
		asked.Verdict, asked.Reason = tenon.Deny, nobodyHere
		answer := agent.Answer{By: agent.ByPolicy, Reason: nobodyHere, InputAnswer: live(encode(declined))}
		return json.RawMessage(`{"action":"decline"}`), q.record(ctx, step, asked, &answer)
	}
	asked.Verdict = tenon.Ask
	e, err := q.attempt.Journal.Ask(ctx, tenon.Event{Step: step, Data: encode(asked)})
	if err != nil {
		return nil, err
	}
	var a agent.Answer
	if e.Kind != agent.EventAnswer || json.Unmarshal(e.Data, &a) != nil {
		return json.RawMessage(`{"action":"cancel"}`), nil // nobody answered in time
	}
	result := responseOf(a)
	q.h.learn(form, result)
	return result, nil
}

var declined = map[string]string{"action": "decline"}

// live is the answer to the one request of a question.
func live(result json.RawMessage) tenon.InputAnswer {
	return tenon.InputAnswer{Responses: encode(map[string]json.RawMessage{agent.QuestionKey: result})}
}

func responseOf(a agent.Answer) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(a.Responses, &all) != nil || len(all[agent.QuestionKey]) == 0 {
		return json.RawMessage(`{"action":"cancel"}`)
	}
	return all[agent.QuestionKey]
}

// next names the step of another question.
func (q *questioner) next() (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked++; q.asked > maxQuestions {
		return "", tenon.Errorf(tenon.CodeLimit, "a call may ask %d times; that is the limit", maxQuestions)
	}
	if q.attempt.Attempt > 1 {
		return fmt.Sprintf("%s/q%d.%d", q.attempt.Step, q.attempt.Attempt, q.asked), nil
	}
	return fmt.Sprintf("%s/q%d", q.attempt.Step, q.asked), nil
}

// record journals a question that no person is asked, and its answer where there
// is one already.
func (q *questioner) record(ctx context.Context, step string, asked agent.Question, answer *agent.Answer) error {
	events := []tenon.Event{{Step: step, Kind: tenon.EventQuestion, Data: encode(asked)}}
	if answer != nil {
		events = append(events, tenon.Event{Step: step, Kind: agent.EventAnswer, Data: encode(answer)})
	}
	return q.attempt.Journal.Record(ctx, events...)
}

// required answers what needs no person of a server's requests for input (2026-07-28,
// multi round-trip requests). Where nothing is left, the call is made again at once.
func (q *questioner) required(ctx context.Context, in *tenon.InputRequired) ([]tenon.Event, error) {
	if q.command.Round >= maxRounds {
		return nil, tenon.Errorf(tenon.CodeProtocol, "tool '%s' of server '%s' asked for input %d times and still wants more", q.command.Remote, q.command.Server, maxRounds)
	}
	requests, err := readRequests(in.Requests)
	if err != nil {
		return nil, err
	}
	clean, err := q.clean(in.Requests)
	if err != nil {
		return nil, err
	}
	input := agent.Input{InputRequired: tenon.InputRequired{Requests: clean, State: in.State, Resume: in.Resume}}
	answered := map[string]json.RawMessage{}
	cfg := q.config()
	answers := cfg.Answers()
	open, by := 0, agent.ByPolicy
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		r := requests[key]
		if err := answers.Check(r.Method, r.Params); err != nil {
			return nil, tenon.Errorf(tenon.CodeProtocol, "server '%s' asks for what it was not offered: %w", q.command.Server, err)
		}
		switch {
		case r.Method == methodRoots:
			answered[key] = answers.RootsResult()
		case r.Method == agent.MethodSample && (cfg.Sampling == servers.AnswerAllow || q.wasSampled(r.Params)):
			a, err := q.generate(ctx, r.Params)
			if err != nil {
				return nil, err
			}
			answered[key] = responseOf(a)
			input.Model = a.Model
			input.Usage, input.Cost = sum(input.Usage, a.Usage), total(input.Cost, a.Cost)
		case r.Method == methodElicit:
			if _, err := ParseForm(r.Params); err != nil {
				return nil, err
			}
			result, ok, err := q.replayed(r.Method, r.Params)
			if err != nil {
				return nil, err
			}
			if ok {
				answered[key] = result
				by = byCassette
				continue
			}
			open++
		default:
			open++
		}
	}
	if len(answered) > 0 {
		input.Answered = encode(answered)
	}
	events := []tenon.Event{{Step: q.attempt.Step, Kind: agent.EventInput, Data: encode(input)}}
	if open == 0 {
		events = append(events, tenon.Event{Step: q.attempt.Step, Kind: agent.EventAnswer, Data: encode(agent.Answer{By: by})})
	}
	return events, nil
}

// inputRequest is one of a server's requests for input.
type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func readRequests(raw json.RawMessage) (map[string]inputRequest, error) {
	var requests map[string]inputRequest
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &requests); err != nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "what the server asks for cannot be read: %w", err)
	}
	if len(requests) > maxRequests {
		return nil, tenon.Errorf(tenon.CodeProtocol, "the server asks for %d things at once; %d is the limit", len(requests), maxRequests)
	}
	return requests, nil
}

// clean masks secrets in what a server asks, before it is kept and shown. Errors:
// protocol (what is left is no JSON, as where a secret stands as a number).
func (q *questioner) clean(raw json.RawMessage) (json.RawMessage, error) {
	out := q.h.redactor.Bytes(raw)
	if len(raw) > 0 && !json.Valid(out) {
		return nil, tenon.Errorf(tenon.CodeProtocol, "server '%s' asks with a configured secret where it cannot be masked", q.command.Server)
	}
	return out, nil
}

// learn has answers to fields that speak of secrets masked from now on, in logs and
// in what the tool returns.
func (h *Host) learn(form Form, result json.RawMessage) {
	var r struct {
		Content map[string]json.RawMessage `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil {
		return
	}
	for _, f := range form.Fields {
		var s string
		if f.Sensitive && json.Unmarshal(r.Content[f.Name], &s) == nil {
			h.redactor.Add(tenon.NewSecret(s))
		}
	}
}

// answersOf returns what a server of a name may ask for; a toolset of the caller's
// own may ask a person.
func (h *Host) answersOf(server string) servers.Config {
	return h.config.Servers[server].WithDefaults()
}
