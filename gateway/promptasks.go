package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

const (
	// maxAsking bounds the prompts for which a legacy server waits for the answer of a modern client.
	maxAsking = 256
	// askingTime is the limit of such a wait.
	askingTime = 10 * time.Minute
	// maxPromptRounds bounds how often a legacy client is asked for one prompt of a modern server.
	maxPromptRounds = 10
	// askingPrefix begins a requestState that the gateway made for a prompt. States without it come from servers.
	askingPrefix = "prompt_"
)

// asking contains the prompts for which a legacy server waits for the answer of a modern client.
type asking struct {
	mu   sync.Mutex
	open map[string]*openAsk // by requestState
}

// askedPrompt is a prompts/get request under way whose server may ask the client.
type askedPrompt struct {
	door   *door
	name   string
	ctx    context.Context // context of the request to the server
	cancel context.CancelFunc
	asks   chan promptAsk
	done   chan struct{} // closed when result and err are set
	result json.RawMessage
	err    error
}

// promptAsk is one question of the server during prompts/get.
type promptAsk struct {
	request json.RawMessage
	answer  chan json.RawMessage
}

// askPrompt gets a prompt from a server for the client of the request. The client answers the questions of the server.
// The client and the server may be of different eras.
func (d *door) askPrompt(ctx context.Context, s host.ServerOffers, exposed, remote string, args map[string]string) (
	json.RawMessage, error) {
	r := mcp.RequestOf(ctx)
	if r == nil {
		return s.Prompt(ctx, remote, args)
	}
	caller := d.caller(r)
	if !r.Modern {
		caller.Ask = r.Ask
		return d.promptRounds(mcp.WithCaller(ctx, caller), s, r, remote, args)
	}
	if strings.HasPrefix(r.State, askingPrefix) {
		return d.continuePrompt(ctx, r, exposed)
	}
	caller.Input = &tenon.InputAnswer{Responses: serverResponses(r), State: r.State}
	return d.beginPrompt(ctx, s, caller, exposed, remote, args)
}

// serverResponses returns the answers of a modern client to the questions of a server, without the one about a sign-in,
// which the gateway asked.
func serverResponses(r *mcp.ToolRequest) json.RawMessage {
	left := json.RawMessage(without(r.Responses, signInKey))
	for range rawjson.Members(left) {
		return left
	}
	return nil
}

// promptRounds gets a prompt for a legacy client. If a modern server needs input, its questions are sent to the client
// as requests.
func (d *door) promptRounds(ctx context.Context, s host.ServerOffers, r *mcp.ToolRequest, remote string,
	args map[string]string) (json.RawMessage, error) {
	caller := mcp.CallerOf(ctx)
	for range maxPromptRounds {
		raw, err := s.Prompt(ctx, remote, args)
		if err != nil || rawjson.String(rawjson.Field(raw, "resultType")) != "input_required" {
			return without(raw, "resultType"), err
		}
		out := []byte{'{'}
		for key, q := range rawjson.Members(rawjson.Field(raw, "inputRequests")) {
			method := rawjson.String(rawjson.Field(q, "method"))
			if !caller.CanAnswer(method, rawjson.Field(q, "params")) {
				return nil, tenon.Errorf(tenon.CodeDenied, "the server asks with %s, which the client did not declare",
					tenon.Visible(method))
			}
			answer, err := r.Ask(ctx, method, rawjson.Field(q, "params"))
			if err != nil {
				return nil, err
			}
			out = member(out, string(key), answer)
		}
		caller.Input = &tenon.InputAnswer{Responses: append(out, '}'),
			State: rawjson.String(rawjson.Field(raw, "requestState"))}
	}
	return nil, tenon.Errorf(tenon.CodeProtocol, "prompt '%s' asked for input %d times and still wants more",
		tenon.Visible(remote), maxPromptRounds)
}

// beginPrompt gets a prompt for a modern client. If a legacy server asks, the client gets the question as a result, and
// the request to the server stays open until the client answers.
func (d *door) beginPrompt(ctx context.Context, s host.ServerOffers, caller *mcp.Caller, exposed, remote string,
	args map[string]string) (json.RawMessage, error) {
	if !d.g.enter() {
		return nil, errClosing
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), askingTime)
	stop := context.AfterFunc(d.g.closed, cancel)
	p := &askedPrompt{door: d, name: exposed, ctx: own, cancel: cancel,
		asks: make(chan promptAsk), done: make(chan struct{})}
	caller.Ask = p.ask
	go func() {
		defer d.g.calls.Done()
		defer stop()
		defer cancel()
		defer close(p.done)
		p.result, p.err = s.Prompt(mcp.WithCaller(own, caller), remote, args)
	}()
	return d.g.asking.wait(ctx, p)
}

// ask passes a question of the server to the request of the client that waits for the prompt.
func (p *askedPrompt) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	request := append(member(text([]byte{'{'}, "method", method), "params", params), '}')
	q := promptAsk{request, make(chan json.RawMessage, 1)}
	select {
	case p.asks <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// wait waits for the prompt or for the next question of the server. It returns either as a result.
func (a *asking) wait(ctx context.Context, p *askedPrompt) (json.RawMessage, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		p.cancel()
		return nil, tenon.Errorf(tenon.CodeCancelled, "the prompt was cancelled: %w", context.Cause(ctx))
	case q := <-p.asks:
		state := tenon.NewID(strings.TrimSuffix(askingPrefix, "_"), time.Now())
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.open) >= maxAsking {
			p.cancel()
			return nil, tenon.Errorf(tenon.CodeLimit, "%d servers wait for answers about prompts; that is the limit",
				maxAsking)
		}
		if a.open == nil {
			a.open = map[string]*openAsk{}
		}
		a.open[state] = &openAsk{p, q}
		context.AfterFunc(p.ctx, func() { a.take(state) })
		return q.needs(state), nil
	}
}

// openAsk is a question that was sent to a client and is not answered yet.
type openAsk struct {
	p *askedPrompt
	q promptAsk
}

// take removes a question.
func (a *asking) take(state string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, state)
}

// key returns the key of the question in the requests to the client.
func (q *promptAsk) key() string {
	params := rawjson.Field(q.request, "params")
	return cmp.Or(rawjson.String(rawjson.Field(rawjson.Field(params, "_meta"), keyMember)), "question")
}

// needs returns the result of type input_required that contains the question.
func (q *promptAsk) needs(state string) json.RawMessage {
	b := append([]byte(`{"resultType":"input_required","inputRequests":`), member([]byte{'{'}, q.key(), q.request)...)
	return append(text(append(b, '}'), "requestState", state), '}')
}

// continuePrompt passes the answer of a modern client to the server that asked, and returns the prompt or the next
// question.
func (d *door) continuePrompt(ctx context.Context, r *mcp.ToolRequest, exposed string) (json.RawMessage, error) {
	a := &d.g.asking
	a.mu.Lock()
	open := a.open[r.State]
	if open == nil || open.p.door.key != d.key || open.p.name != exposed {
		a.mu.Unlock()
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "requestState belongs to no open question about this "+
			"prompt; get it again without requestState")
	}
	answer := rawjson.Field(r.Responses, open.q.key())
	if !rawjson.IsObject(answer) {
		a.mu.Unlock()
		return open.q.needs(r.State), nil
	}
	delete(a.open, r.State)
	a.mu.Unlock()
	open.q.answer <- json.RawMessage(answer)
	return a.wait(ctx, open.p)
}
