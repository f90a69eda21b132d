package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/view"
)

const (
	// approvalKey is the key of the question whether a call may be made.
	approvalKey = "approval"
	// maxShownArguments bounds the arguments in such a question, in bytes.
	maxShownArguments = 2000
	// gatherTime is the time in which further questions of a legacy server are collected. A modern client then gets all
	// of them at once.
	gatherTime = 50 * time.Millisecond
	// keyMember is the member of _meta in which a legacy server can name its question. Modern servers name each
	// question in inputRequests.
	keyMember = "tenonhq.github.io/key"
)

// inputNeeded ends a call of a modern client with questions, which the client answers by calling again.
type inputNeeded struct{ raw json.RawMessage }

// Error implements error.
func (*inputNeeded) Error() string { return "the client is asked for input" }

func isInputNeeded(err error) bool {
	var in *inputNeeded
	return errors.As(err, &in)
}

// clientQuestion contains the pending decisions of a run, as requests that its client can answer.
type clientQuestion struct {
	run   string
	parts []questionPart
}

// questionPart contains the pending decision of one step, as requests to the client.
type questionPart struct {
	id       string // made of the step and the time since when it waits
	step     string
	approval bool // the client decides whether the call may be made; otherwise it answers a server
	requests []clientRequest
}

// clientRequest is one request to the client.
type clientRequest struct {
	key  string // as sent to the client
	own  string // as stored in the run
	body json.RawMessage
}

func (r *clientRequest) method() string { return rawjson.String(rawjson.Field(r.body, "method")) }

// stateForm matches a requestState that the gateway made.
var stateForm = lazyregexp.New(`^run_[0-9a-z]+/[0-9.]+(/q[0-9.]+)?@[0-9a-z]+(,[0-9.]+(/q[0-9.]+)?@[0-9a-z]+)*$`)

// state returns the requestState that identifies the question. It needs no signature, because an answer counts only for
// the run of an equal call of the same principal, and only while that run waits for it.
func (q *clientQuestion) state() string {
	var ids []string
	for _, p := range q.parts {
		ids = append(ids, p.id)
	}
	return q.run + "/" + strings.Join(ids, ",")
}

// checkState refuses a requestState that the gateway did not make, or that belongs to another call.
func checkState(state, run string) error {
	if state == "" {
		return nil
	}
	if !stateForm().MatchString(state) || !strings.HasPrefix(state, run+"/") || run == "" {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "requestState belongs to no open call with these arguments; "+
			"call again without it")
	}
	return nil
}

// question returns the pending decisions of the run. It returns nil if the client cannot answer any of them, or must
// not.
func (f *following) question(ctx context.Context, h *host.Host) *clientQuestion {
	list, err := h.Approvals().List(ctx, f.run)
	if err != nil {
		return nil // a person decides
	}
	endpoint, err := endpointOf(h, f.door.key.endpoint)
	if err != nil {
		return nil
	}
	slices.SortStableFunc(list, func(a, b host.Approval) int { return cmp.Compare(a.Step, b.Step) })
	q := &clientQuestion{run: f.run}
	taken := map[string]bool{}
	for i := range list {
		a := &list[i]
		if p := f.part(a, endpoint, taken); a.Run == f.run && p != nil {
			q.parts = append(q.parts, *p)
		}
	}
	if len(q.parts) == 0 {
		return nil
	}
	return q
}

// part returns the pending decision of a step. It returns nil if the client cannot answer it, or must not.
func (f *following) part(a *host.Approval, endpoint config.Endpoint, taken map[string]bool) *questionPart {
	p := &questionPart{step: a.Step, id: a.Step + "@" + strconv.FormatInt(a.Since.UnixNano(), 36)}
	switch a.Kind {
	case agent.AskApproval:
		if endpoint.Approve != config.ApproveClient {
			return nil
		}
		p.approval = true
		p.requests = []clientRequest{{approvalKey, approvalKey, approvalRequest(a)}}
	case agent.AskInput, agent.AskSampling:
		for key, raw := range rawjson.Members(a.Requests) {
			p.requests = append(p.requests, clientRequest{string(key), string(key), raw})
		}
	}
	for i := range p.requests {
		r := &p.requests[i]
		params := rawjson.Field(r.body, "params")
		if !f.caller.CanAnswer(r.method(), params) {
			return nil
		}
		if name := rawjson.String(rawjson.Field(rawjson.Field(params, "_meta"), keyMember)); a.Live && name != "" {
			r.key = name
		}
		r.body = f.shown(r.body)
		r.key = f.shownText(r.key)
		for n := 2; taken[r.key]; n++ {
			r.key = f.shownText(r.own) + strconv.Itoa(n)
		}
		taken[r.key] = true
	}
	if len(p.requests) == 0 {
		return nil
	}
	return p
}

// approvalRequest returns the request that asks the client whether a call may be made.
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

// needs returns the error that ends the call of a modern client with the question.
func (q *clientQuestion) needs() error {
	b := []byte(`{"resultType":"input_required","inputRequests":`)
	requests := []byte{'{'}
	for _, p := range q.parts {
		for _, r := range p.requests {
			requests = member(requests, r.key, r.body)
		}
	}
	b = append(append(b, requests...), '}')
	return &inputNeeded{append(text(b, "requestState", q.state()), '}')}
}

// ask sends the requests of one part to a legacy client. It returns the responses by the keys in the run. Errors: a
// *jsonrpc.Error of the client.
func (p *questionPart) ask(ctx context.Context, r *mcp.ToolRequest) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, one := range p.requests {
		result, err := r.Ask(ctx, one.method(), rawjson.Field(one.body, "params"))
		if err != nil {
			return nil, err
		}
		out[one.own] = result
	}
	return out, nil
}

// responses returns a modern client's responses to one part, by the keys in the run. It returns nil if the call
// contains none.
func (p *questionPart) responses(r *mcp.ToolRequest) map[string]json.RawMessage {
	_, ids, _ := strings.Cut(r.State, "/")
	if r.State == "" && p.approval || r.State != "" && !slices.Contains(strings.Split(ids, ","), p.id) {
		return nil // no answers, or answers to a question that has ended
	}
	out := map[string]json.RawMessage{}
	for _, one := range p.requests {
		v := rawjson.Field(r.Responses, one.key)
		if !rawjson.IsObject(v) {
			return nil
		}
		out[one.own] = v
	}
	return out
}

// decide stores the answers of the client. If responses is nil, the client refused to answer. An approval is declined
// by every answer other than accept. Errors: invalid, conflict (somebody else has decided).
func (q *clientQuestion) decide(ctx context.Context, h *host.Host, p *questionPart, who tenon.Principal,
	responses map[string]json.RawMessage) error {
	r := agent.Ruling{Verdict: tenon.Allow, By: "client of " + string(who)}
	switch {
	case responses == nil:
		r.Verdict = tenon.Deny
	case p.approval:
		a := responses[approvalKey]
		if rawjson.String(rawjson.Field(a, "action")) != "accept" ||
			rawjson.String(rawjson.Field(rawjson.Field(a, "content"), "decision")) != string(tenon.Allow) {
			r.Verdict = tenon.Deny
		}
	default:
		r.Responses = tenon.EventData(responses)
	}
	_, _, err := h.Approvals().Decide(ctx, q.run, p.step, r)
	return err
}

// asks sends a question of a server during a call to the client, if the rules ask a person. If moved is set, the client
// follows another run from now on. stop ends the question.
func (f *following) asks(ctx context.Context, e tenon.Event) (moved bool, stop func(), err error) {
	stop = func() {}
	asked, err := view.Try[agent.Question](e)
	if err != nil || asked.Verdict != tenon.Ask || !f.caller.CanAnswer(asked.Method, asked.Params) {
		return false, stop, nil
	}
	if f.request.Modern {
		select {
		case <-time.After(gatherTime):
		case <-ctx.Done():
		}
	}
	if f.question(ctx, f.g.current()) == nil {
		return false, stop, nil
	}
	run := f.run
	if err := f.park(ctx); err != nil || f.run != run {
		return err == nil, stop, err
	}
	_, stop, err = f.askClient(ctx)
	return false, stop, err
}

// askClient sends the pending decisions of the run to the client. For a legacy client, answered is closed when it has
// answered, and stop ends the question; answered is nil if the client is not asked. For a modern client, the error ends
// the call with the question.
func (f *following) askClient(ctx context.Context) (answered <-chan struct{}, stop func(), err error) {
	h := f.g.current()
	stop = func() {}
	q := f.question(ctx, h)
	if q == nil {
		return nil, stop, nil
	}
	q.parts = slices.DeleteFunc(q.parts, func(p questionPart) bool { return f.asked[p.id] })
	if len(q.parts) == 0 {
		return nil, stop, nil
	}
	if f.request.Modern {
		return nil, stop, f.answer(ctx, h, q)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	for _, p := range q.parts {
		f.ask(p.id)
	}
	go func() {
		defer close(done)
		for _, p := range q.parts {
			responses, err := p.ask(ctx, f.request)
			var refused *jsonrpc.Error
			if errors.As(err, &refused) && ctx.Err() == nil && !p.approval {
				responses, err = nil, nil
			}
			if err == nil {
				err = q.decide(ctx, h, &p, f.door.key.who, responses)
			}
			if err != nil && ctx.Err() == nil { // a person decides
				h.Service().Info().Logger.Info("the client did not answer", "run", q.run, "error", err)
			}
		}
	}()
	return done, func() { cancel(); <-done }, nil
}

// ask records that a part of a question was sent to the client.
func (f *following) ask(id string) {
	if f.asked == nil {
		f.asked = map[string]bool{}
	}
	f.asked[id] = true
}

// answer stores the answers of a modern client. If some are missing, the error ends the call with the remaining
// question.
func (f *following) answer(ctx context.Context, h *host.Host, q *clientQuestion) error {
	open := &clientQuestion{run: q.run}
	for _, p := range q.parts {
		responses := p.responses(f.request)
		if responses == nil {
			open.parts = append(open.parts, p)
			continue
		}
		f.ask(p.id)
		if f.request.State == "" { // use answers without a requestState only once
			f.request.Responses = nil
		}
		err := q.decide(ctx, h, &p, f.door.key.who, responses)
		code := tenon.ErrorCode(err)
		if err != nil && code != tenon.CodeConflict && code != tenon.CodeNotFound {
			return err // otherwise the question has ended, for example with a process that died; the run says how
		}
	}
	if len(open.parts) == 0 {
		return nil
	}
	f.g.parked.leave(f.key, f.run)
	return open.needs()
}
