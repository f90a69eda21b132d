package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/view"
)

// approvalKey is the key of the question whether a call may be made.
const approvalKey = "approval"

// maxShownArguments bounds the arguments in such a question, in bytes.
const maxShownArguments = 2000

// inputNeeded ends a call of a modern client with questions, which the client answers by calling again.
type inputNeeded struct{ raw json.RawMessage }

// Error implements error.
func (*inputNeeded) Error() string { return "the client is asked for input" }

func isInputNeeded(err error) bool {
	var in *inputNeeded
	return errors.As(err, &in)
}

// clientQuestion is what a call waits for, as requests that its client can answer.
type clientQuestion struct {
	run, step string
	approval  bool                       // whether the call may be made; otherwise a server asks
	requests  map[string]json.RawMessage // key → {method, params}; all are elicitations
}

// state identifies the question in requestState. It needs no signature: an answer counts only for the run of an equal
// call of the same principal, and only as long as that run waits for it.
func (q *clientQuestion) state() string { return q.run + "/" + q.step }

// question returns what the run waits for, nil if its client cannot or must not answer it.
func (f *following) question(ctx context.Context, h *host.Host) *clientQuestion {
	list, err := h.Approvals().List(ctx, f.run)
	if err != nil || len(list) != 1 {
		return nil // a person decides
	}
	a := list[0]
	endpoint, err := endpointOf(h, f.door.key.endpoint)
	if err != nil {
		return nil
	}
	q := &clientQuestion{run: a.Run, step: a.Step, requests: map[string]json.RawMessage{}}
	switch {
	case a.Kind == agent.AskApproval && endpoint.Approve == config.ApproveClient:
		q.approval = true
		q.requests[approvalKey] = approvalRequest(&a)
	case a.Kind == agent.AskInput:
		for key, raw := range rawjson.Members(a.Requests) {
			q.requests[string(key)] = raw
		}
	default:
		return nil
	}
	for _, raw := range q.requests {
		if !canElicit(f.request.Capabilities, raw) {
			return nil
		}
	}
	if len(q.requests) == 0 {
		return nil
	}
	return q
}

// canElicit reports whether a client declared that it can answer a request.
func canElicit(capabilities, request json.RawMessage) bool {
	can := rawjson.Field(capabilities, "elicitation")
	if rawjson.String(rawjson.Field(request, "method")) != mcp.MethodElicit || !rawjson.IsObject(can) {
		return false
	}
	form, url := rawjson.Field(can, "form") != nil, rawjson.Field(can, "url") != nil
	if rawjson.String(rawjson.Field(rawjson.Field(request, "params"), "mode")) == "url" {
		return url
	}
	return form || !url // an empty capability means forms
}

// approvalRequest asks whether a call may be made.
func approvalRequest(a *host.Approval) json.RawMessage {
	args := tenon.Shorten(tenon.Visible(string(a.Arguments)), maxShownArguments)
	message := fmt.Sprintf("May the tool '%s' of server '%s' be called with %s?", tenon.Visible(a.Remote), a.Server,
		args)
	if a.Reason != "" {
		message += " It asks because: " + tenon.Visible(a.Reason)
	}
	return tenon.EventData(map[string]any{"method": mcp.MethodElicit, "params": map[string]any{"mode": "form",
		"message": message, "requestedSchema": map[string]any{"type": "object", "required": []string{"decision"},
			"properties": map[string]any{"decision": map[string]any{"type": "string", "title": "Decision",
				"enum": []string{string(tenon.Deny), string(tenon.Allow)}}}}}})
}

// needs ends the call of a modern client with the question.
func (q *clientQuestion) needs() error {
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, key := range slices.Sorted(maps.Keys(q.requests)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(rawjson.AppendString(b, key), ':'), q.requests[key]...)
	}
	b = append(b, '}')
	return &inputNeeded{append(text(b, "requestState", q.state()), '}')}
}

// ask asks a legacy client and returns its responses, by key. Errors: a *jsonrpc.Error of the client.
func (q *clientQuestion) ask(ctx context.Context, r *mcp.ToolRequest) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(q.requests)) {
		result, err := r.Ask(ctx, mcp.MethodElicit, rawjson.Field(q.requests[key], "params"))
		if err != nil {
			return nil, err
		}
		out[key] = result
	}
	return out, nil
}

// responses returns the answers of a modern client to the question, nil if its call has none.
func (q *clientQuestion) responses(r *mcp.ToolRequest) map[string]json.RawMessage {
	if r.State != q.state() {
		return nil // no answers, or answers to a question that has ended
	}
	out := map[string]json.RawMessage{}
	for key, v := range rawjson.Members(r.Responses) {
		if q.requests[string(key)] != nil {
			out[string(key)] = v
		}
	}
	if len(out) < len(q.requests) {
		return nil
	}
	return out
}

// decide stores the answers of the client. Anything but an accepted answer declines. Errors: invalid (the form),
// conflict (somebody else has decided).
func (q *clientQuestion) decide(ctx context.Context, h *host.Host, who tenon.Principal,
	responses map[string]json.RawMessage) error {
	r := agent.Ruling{Verdict: tenon.Allow, By: "client of " + string(who)}
	contents := map[string]json.RawMessage{}
	for key, v := range responses {
		if rawjson.String(rawjson.Field(v, "action")) != "accept" {
			r.Verdict = tenon.Deny
		}
		if c := rawjson.Field(v, "content"); c != nil {
			contents[key] = c
		}
	}
	switch {
	case q.approval:
		if rawjson.String(rawjson.Field(contents[approvalKey], "decision")) != string(tenon.Allow) {
			r.Verdict = tenon.Deny
		}
	case r.Verdict == tenon.Allow && len(q.requests) == 1:
		for _, c := range contents {
			r.Arguments = c
		}
	case r.Verdict == tenon.Allow && len(contents) > 0:
		r.Arguments = tenon.EventData(contents)
	}
	_, _, err := h.Approvals().Decide(ctx, q.run, q.step, r)
	return err
}

// asks has the client answer a question of a server whose call is under way, if a person would be asked. Moved says
// that the client follows another run from now on. Stop ends the question.
func (f *following) asks(ctx context.Context, e tenon.Event) (moved bool, stop func(), err error) {
	stop = func() {}
	asked, err := view.Try[agent.Question](e)
	if err != nil || asked.Verdict != tenon.Ask || f.question(ctx, f.g.current()) == nil {
		return false, stop, nil
	}
	run := f.run
	if err := f.park(ctx); err != nil || f.run != run {
		return err == nil, stop, err
	}
	_, stop, err = f.askClient(ctx)
	return false, stop, err
}

// askClient has the client answer what the run waits for. Answered is closed when a legacy client has answered, nil if
// it is not asked; stop ends the question. The error ends the call of a modern client with the question.
func (f *following) askClient(ctx context.Context) (answered <-chan struct{}, stop func(), err error) {
	h := f.g.current()
	stop = func() {}
	q := f.question(ctx, h)
	switch {
	case q == nil || strings.Contains(f.asked, " "+q.state()+" "):
		return nil, stop, nil
	case f.request.Modern:
		responses := q.responses(f.request)
		if responses == nil {
			f.g.parked.leave(f.key, f.run)
			return nil, stop, q.needs()
		}
		f.asked += " " + q.state() + " "
		err := q.decide(ctx, h, f.door.key.who, responses)
		if code := tenon.ErrorCode(err); code == tenon.CodeConflict || code == tenon.CodeNotFound {
			err = nil // the question has ended, for example with a process that died; the run says how the call ended
		}
		return nil, stop, err
	}
	f.asked += " " + q.state() + " "
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		responses, err := q.ask(ctx, f.request)
		if err == nil {
			err = q.decide(ctx, h, f.door.key.who, responses)
		}
		if err != nil && ctx.Err() == nil { // a person decides
			h.Service().Info().Logger.Info("the client did not answer", "run", q.run, "error", err)
		}
	}()
	return done, func() { cancel(); <-done }, nil
}
