package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

const (
	// maxAsking bounds the prompts and resources for which a legacy server waits for the answer of a modern client.
	maxAsking = 256
	// maxAskingEach bounds them for one principal, so that no principal can use up the questions of the others.
	maxAskingEach = 32
	// askingTime is the limit of such a wait.
	askingTime = 10 * time.Minute
	// maxOfferRounds bounds how often a legacy client is asked for one prompt or resource of a modern server.
	maxOfferRounds = 10
	// askingPrefix begins a requestState that the gateway made for a prompt or a resource. States without it come from
	// servers.
	askingPrefix = "tenonask_"
)

// asking contains the requests for which a legacy server waits for the answer of a modern client.
type asking struct {
	mu   sync.Mutex
	open map[string]*openAsk // by requestState
}

// offerRequest is a request of a client for a prompt or a resource, during which the server may ask questions.
type offerRequest struct {
	method string // prompts/get or resources/read
	name   string // in the client's request
	// send sends the request to the server, with the [mcp.Caller] of the context. The result is of type input_required
	// if a modern server asks.
	send func(ctx context.Context) (json.RawMessage, error)
}

// String names the prompt or the resource.
func (q *offerRequest) String() string {
	if q.method == "resources/read" {
		return "resource '" + tenon.Visible(q.name) + "'"
	}
	return "prompt '" + tenon.Visible(q.name) + "'"
}

// askedOffer is a request under way whose server may ask the client.
type askedOffer struct {
	offerRequest
	door   *door
	ctx    context.Context // context of the request to the server
	cancel context.CancelFunc
	asks   chan offerAsk
	done   chan struct{} // closed when result and err are set
	result json.RawMessage
	err    error
}

// offerAsk is one question of the server during a request.
type offerAsk struct {
	request json.RawMessage
	answer  chan json.RawMessage
}

// askOffer requests a prompt or a resource from a server for the client of ctx. The client answers the questions of
// the server. The client and the server may be of different eras.
func (d *door) askOffer(ctx context.Context, q offerRequest) (json.RawMessage, error) {
	r := mcp.RequestOf(ctx)
	if r == nil {
		return q.send(ctx)
	}
	caller := d.caller(r)
	if !r.Modern {
		caller.Ask = d.shownAsk(r)
		return q.rounds(mcp.WithCaller(ctx, caller))
	}
	if strings.HasPrefix(r.State, askingPrefix) {
		return d.continueOffer(ctx, r, q)
	}
	caller.Input = &tenon.InputAnswer{Responses: serverResponses(r), State: r.State}
	return d.beginOffer(ctx, caller, q)
}

// shown returns JSON of a server as clients may see it: without secrets and hidden characters.
func (d *door) shown(raw json.RawMessage) json.RawMessage {
	return d.g.current().Service().Callers().Mask(tenon.VisibleJSON(raw))
}

// shownText is shown for a text.
func (d *door) shownText(s string) string {
	return rawjson.String(d.shown(rawjson.AppendString(nil, s)))
}

// shownAsk returns a function that sends a question of a server to a legacy client as [door.shown].
func (d *door) shownAsk(r *mcp.ToolRequest) mcp.AskFunc {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if len(params) > 0 {
			params = d.shown(params)
		}
		return r.Ask(ctx, method, params)
	}
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

// rounds sends the request of the legacy client of ctx. If a modern server needs input, its questions are sent to the
// client as requests.
func (q *offerRequest) rounds(ctx context.Context) (json.RawMessage, error) {
	caller := mcp.CallerOf(ctx)
	for range maxOfferRounds {
		raw, err := q.send(ctx)
		if err != nil || rawjson.String(rawjson.Field(raw, "resultType")) != "input_required" {
			return without(raw, "resultType"), err
		}
		if err := canAnswerAll(caller, raw); err != nil {
			return nil, err
		}
		out := []byte{'{'}
		for key, ask := range rawjson.Members(rawjson.Field(raw, "inputRequests")) {
			answer, err := caller.Ask(ctx, rawjson.String(rawjson.Field(ask, "method")), rawjson.Field(ask, "params"))
			if err != nil {
				return nil, err
			}
			out = member(out, string(key), answer)
		}
		caller.Input = &tenon.InputAnswer{Responses: append(out, '}'),
			State: rawjson.String(rawjson.Field(raw, "requestState"))}
	}
	return nil, tenon.Errorf(tenon.CodeProtocol, "%s asked for input %d times and still wants more", q, maxOfferRounds)
}

// beginOffer sends the request of a modern client. If a legacy server asks, the client gets the question as a result,
// and the request to the server stays open until the client answers.
func (d *door) beginOffer(ctx context.Context, caller *mcp.Caller, q offerRequest) (json.RawMessage, error) {
	if !d.g.enter() {
		return nil, errClosing
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), askingTime)
	stop := context.AfterFunc(d.g.closed, cancel)
	p := &askedOffer{offerRequest: q, door: d, ctx: own, cancel: cancel,
		asks: make(chan offerAsk), done: make(chan struct{})}
	caller.Ask = p.ask
	go func() {
		defer d.g.calls.Done()
		defer stop()
		defer cancel()
		defer close(p.done)
		if p.result, p.err = q.send(mcp.WithCaller(own, caller)); p.err == nil {
			p.err = canAnswerAll(caller, p.result)
		}
	}()
	return d.g.asking.wait(ctx, p)
}

// canAnswerAll returns an error of code denied if a result asks the client for something that it did not declare.
func canAnswerAll(c *mcp.Caller, result []byte) error {
	if rawjson.String(rawjson.Field(result, "resultType")) != "input_required" {
		return nil
	}
	for _, ask := range rawjson.Members(rawjson.Field(result, "inputRequests")) {
		method := rawjson.String(rawjson.Field(ask, "method"))
		if !c.CanAnswer(method, rawjson.Field(ask, "params")) {
			return tenon.Errorf(tenon.CodeDenied, "the server asks with %s, which the client did not declare",
				tenon.Visible(method))
		}
	}
	return nil
}

// ask passes a question of the server to the request of the client that waits for the result.
func (p *askedOffer) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	request := append(member(text([]byte{'{'}, "method", method), "params", params), '}')
	q := offerAsk{request, make(chan json.RawMessage, 1)}
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

// wait waits for the result or for the next question of the server. It returns either as a result.
func (a *asking) wait(ctx context.Context, p *askedOffer) (json.RawMessage, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		p.cancel()
		return nil, tenon.Errorf(tenon.CodeCancelled, "the request for %s was cancelled: %w", p,
			context.Cause(ctx))
	case q := <-p.asks:
		state := tenon.NewID(strings.TrimSuffix(askingPrefix, "_"), time.Now())
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.open) >= maxAsking {
			p.cancel()
			return nil, tenon.Errorf(tenon.CodeLimit, "%d servers wait for answers about prompts and resources; "+
				"that is the limit", maxAsking)
		}
		if who := p.door.key.who; a.of(who) >= maxAskingEach {
			p.cancel()
			return nil, tenon.Errorf(tenon.CodeLimit, "%d servers wait for answers of '%s' about prompts and "+
				"resources; that is the limit. Answer or cancel one of these requests first", maxAskingEach, who)
		}
		if a.open == nil {
			a.open = map[string]*openAsk{}
		}
		a.open[state] = &openAsk{p, q}
		context.AfterFunc(p.ctx, func() { a.take(state) })
		return q.needs(state), nil
	}
}

// of counts the questions that wait for a principal. The caller holds the lock.
func (a *asking) of(who tenon.Principal) (n int) {
	for _, open := range a.open {
		if open.p.door.key.who == who {
			n++
		}
	}
	return n
}

// openAsk is a question that was sent to a client and is not answered yet.
type openAsk struct {
	p *askedOffer
	q offerAsk
}

// take removes a question.
func (a *asking) take(state string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, state)
}

// key returns the key of the question in the requests to the client.
func (q *offerAsk) key() string {
	params := rawjson.Field(q.request, "params")
	return cmp.Or(rawjson.String(rawjson.Field(rawjson.Field(params, "_meta"), keyMember)), "question")
}

// needs returns the result of type input_required that contains the question.
func (q *offerAsk) needs(state string) json.RawMessage {
	b := append([]byte(`{"resultType":"input_required","inputRequests":`), member([]byte{'{'}, q.key(), q.request)...)
	return append(text(append(b, '}'), "requestState", state), '}')
}

// continueOffer passes the answer of a modern client to the server that asked, and returns the result or the next
// question.
func (d *door) continueOffer(ctx context.Context, r *mcp.ToolRequest, q offerRequest) (json.RawMessage, error) {
	a := &d.g.asking
	a.mu.Lock()
	open := a.open[r.State]
	if open == nil || open.p.door.key != d.key || open.p.method != q.method || open.p.name != q.name {
		a.mu.Unlock()
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "requestState belongs to no open question about %s; "+
			"repeat the request without requestState", &q)
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
