package executor

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
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/mcp/elicit"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// methodRoots is the protocol's request for roots.
const methodRoots = "roots/list"

// Bounds of the questions during a call.
const (
	maxQuestions = 50 // of one attempt
	maxRounds    = 10 // of input_required results
)

// nobodyHere is the reason for declining a question in a process without a person.
const nobodyHere = "nobody is there to answer: this process has no terminal, and was not told to wait"

// questioner answers a server's questions during one attempt of a call.
type questioner struct {
	x       *Executor
	run     string
	attempt *engine.Attempt
	command *agent.ToolCommand
	limit   *patience.Limit // time limit of the call; paused while a question is open
	caller  *mcp.Caller     // the client that waits for the call; nil if there is none

	mu      sync.Mutex
	asked   int
	sampled int
}

// config returns the configuration of the server. It is read only when needed, because most servers ask nothing.
func (q *questioner) config() servers.Config { return q.x.cfg.Server(q.command.Server) }

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
	q.x.cfg.Logger.Info("MCP server asks", "run", q.run, "step", step, "server", q.command.Server, "method", method)
	if method == agent.MethodSample {
		return q.sample(ctx, step, asked)
	}
	if method == methodRoots {
		return q.roots(ctx, step, asked)
	}
	form, err := elicit.Parse(params)
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
	if !q.x.cfg.Interactive && !q.caller.CanAnswer(method, params) {
		asked.Verdict, asked.Reason = tenon.Deny, nobodyHere
		answer := agent.Answer{By: agent.ByPolicy, Reason: nobodyHere, InputAnswer: live(tenon.EventData(declined))}
		return json.RawMessage(`{"action":"decline"}`), q.record(ctx, step, asked, &answer)
	}
	asked.Verdict = tenon.Ask
	e, err := q.attempt.Journal.Ask(ctx, tenon.Event{Step: step, Data: tenon.EventData(asked)})
	if err != nil {
		return nil, err
	}
	a, err := view.Try[agent.Answer](e)
	if err != nil {
		return json.RawMessage(`{"action":"cancel"}`), nil // nobody answered in time
	}
	result := responseOf(a)
	for _, value := range form.SensitiveValues(result) {
		q.x.cfg.Redactor.Add(tenon.NewSecret(value))
	}
	return result, nil
}

// roots forwards the request for roots to the client that waits for the call.
func (q *questioner) roots(ctx context.Context, step string, asked agent.Question) (json.RawMessage, error) {
	asked.Verdict = tenon.Ask
	e, err := q.attempt.Journal.Ask(ctx, tenon.Event{Step: step, Data: tenon.EventData(asked)})
	if err != nil {
		return nil, err
	}
	a, err := view.Try[agent.Answer](e)
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeDenied, "the client did not name its roots in time")
	case a.Error != nil:
		return nil, a.Error
	}
	return responseOf(a), nil
}

// The answers to a form or a page that was not accepted.
var (
	declined  = map[string]string{"action": "decline"}
	cancelled = map[string]string{"action": "cancel"}
)

// live wraps the answer to a single question.
func live(result json.RawMessage) tenon.InputAnswer {
	return tenon.InputAnswer{Responses: tenon.EventData(map[string]json.RawMessage{agent.QuestionKey: result})}
}

func responseOf(a agent.Answer) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(a.Responses, &all) != nil || len(all[agent.QuestionKey]) == 0 {
		return json.RawMessage(`{"action":"cancel"}`)
	}
	return all[agent.QuestionKey]
}

// next returns the step for a further question.
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

// record journals a question that is not put to a person, and its answer if there is one.
func (q *questioner) record(ctx context.Context, step string, asked agent.Question, answer *agent.Answer) error {
	events := []tenon.Event{{Step: step, Kind: tenon.EventQuestion, Data: tenon.EventData(asked)}}
	if answer != nil {
		events = append(events, tenon.Event{Step: step, Kind: agent.EventAnswer, Data: tenon.EventData(answer)})
	}
	return q.attempt.Journal.Record(ctx, events...)
}

// required answers those requests of a server for input that need no person (2026-07-28, multi round-trip requests).
// If all of them are answered, the call is repeated at once with the answers.
func (q *questioner) required(ctx context.Context, in *tenon.InputRequired) ([]tenon.Event, error) {
	if q.command.Round >= maxRounds {
		return nil, tenon.Errorf(tenon.CodeProtocol,
			"tool '%s' of server '%s' asked for input %d times and still wants more",
			q.command.Remote, q.command.Server, maxRounds)
	}
	requests, err := elicit.ParseRequests(in.Requests)
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
	answers := cfg.Answers().For(q.caller)
	open, by := 0, agent.ByPolicy
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		r := requests[key]
		if err := answers.Check(r.Method, r.Params); err != nil {
			return nil, tenon.Errorf(tenon.CodeProtocol, "server '%s' asks for what it was not offered: %w",
				q.command.Server, err)
		}
		switch {
		case r.Method == methodRoots && !answers.AsksForRoots(q.caller):
			answered[key] = answers.RootsResult()
		case r.Method == agent.MethodSample && (cfg.Sampling == servers.AnswerAllow || q.wasSampled(r.Params)):
			a, err := q.generate(ctx, r.Params)
			if err != nil {
				return nil, err
			}
			answered[key] = responseOf(a)
			input.Model = a.Model
			input.Usage, input.Cost = sum(input.Usage, a.Usage), total(input.Cost, a.Cost)
		case r.Method == elicit.Method:
			if _, err := elicit.Parse(r.Params); err != nil {
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
		input.Answered = tenon.EventData(answered)
	}
	events := []tenon.Event{{Step: q.attempt.Step, Kind: agent.EventInput, Data: tenon.EventData(input)}}
	if open == 0 {
		events = append(events, tenon.Event{Step: q.attempt.Step, Kind: agent.EventAnswer,
			Data: tenon.EventData(agent.Answer{By: by})})
	}
	return events, nil
}

// clean masks secrets in a server's question before it is stored and shown. Errors: protocol (the masked question is
// no longer JSON, for example because a number was a secret).
func (q *questioner) clean(raw json.RawMessage) (json.RawMessage, error) {
	out := q.x.cfg.Redactor.Bytes(raw)
	if len(raw) > 0 && !json.Valid(out) {
		return nil, tenon.Errorf(tenon.CodeProtocol,
			"server '%s' asks with a configured secret where it cannot be masked",
			q.command.Server)
	}
	return out, nil
}

// byCassette is the author of recorded answers.
const byCassette = "cassette"

// replayed returns the recorded answer to a server's question. It returns false if this is not a replay, or if the
// question was not recorded.
func (q *questioner) replayed(method string, params json.RawMessage) (json.RawMessage, bool, error) {
	if q.x.cfg.Replay == nil {
		return nil, false, nil
	}
	answer, ok, err := q.x.cfg.Replay(q.command.Server, method, params)
	if ok && err == nil && len(answer) == 0 {
		answer = json.RawMessage(`{"action":"cancel"}`)
	}
	return answer, ok, err
}

// wasSampled reports whether this is a replay of a call in which the model answered the server.
func (q *questioner) wasSampled(params json.RawMessage) bool {
	_, ok, err := q.replayed(agent.MethodSample, params)
	return ok && err == nil
}

// byReplay returns the recorded answer to a single question.
func byReplay(result json.RawMessage) *agent.Answer {
	return &agent.Answer{By: byCassette, InputAnswer: live(result)}
}
