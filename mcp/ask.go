package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/patience"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// The requests that a server may send to its client.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// CodeURLElicitation is the error code with which a server of revision 2025-11-25 says that a person must visit a URL
// before the request can be carried out.
const CodeURLElicitation = -32042

// codeRejected is the error code if a person or the rules refuse a request (2025-11-25, sampling).
const codeRejected = -1

// Bounds of a server's requests.
const (
	maxQuestions    = 16       // open at a time, per connection
	maxElicitParams = 64 << 10 // bytes of the params of an elicitation
	maxSampleParams = 1 << 20  // bytes of the params of a sampling request
)

// Answers says which requests of a server are answered. These are declared as capabilities, in both eras; all others
// are refused. The zero value refuses all.
type Answers struct {
	Form     bool // elicitation by a form
	URL      bool // elicitation by a URL that a person visits
	Sampling bool // an answer of tenon's model, without tools
	// Roots are the folders that the server may list. If nil, the capability roots is not declared. Servers may treat
	// them as the folders that they are allowed to use.
	Roots []Root
	// Client are the questions that only the client behind a request answers; see [Caller].
	Client ClientAnswers
}

// any reports whether the server may ask for anything.
func (a Answers) any() bool {
	a = a.all()
	return a.Form || a.URL || a.Sampling || a.Roots != nil
}

// Root is a folder that a server may list.
type Root struct {
	URI  string `json:"uri"` // file://…
	Name string `json:"name,omitempty"`
}

// Asker answers a server's requests outside of any call.
type Asker interface {
	// Ask answers [MethodElicit] or [MethodSample], with params and result as in the protocol. Its context ends when
	// the server cancels the question or the connection is lost. It may block. Errors of code denied and invalid are
	// sent to the server as such.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// SetRoots replaces the roots of a client that declared some, and sends notifications/roots/list_changed to a legacy
// server. In the modern era nothing is sent: the roots are part of an answer to the server.
func (c *Client) SetRoots(ctx context.Context, roots []Root) error {
	if c.cfg.Answers.Roots == nil || roots == nil {
		return nil // the capability was declared for the whole connection
	}
	c.roots.Store(&roots)
	if c.isModern() || c.isPlain() {
		return nil
	}
	return c.peer.Notify(ctx, "notifications/roots/list_changed", nil)
}

// answers returns the requests that are answered, with the current roots.
func (c *Client) answers() Answers {
	a := c.cfg.Answers
	if roots := c.roots.Load(); roots != nil {
		a.Roots = *roots
	}
	return a
}

// capabilities declares only the questions that can be answered. Settings, if not nil, are added as an experimental
// capability. extensions are extensions of the modern era.
func (a Answers) capabilities(modern bool, settings []byte, extensions ...string) []byte {
	b := []byte{'{'}
	if a.Form || a.URL {
		modes := []byte{'{'}
		if a.Form {
			modes = member(modes, "form", []byte("{}"))
		}
		if a.URL {
			modes = member(modes, "url", []byte("{}"))
		}
		b = member(b, "elicitation", append(modes, '}'))
	}
	if a.Sampling {
		b = member(b, "sampling", []byte("{}"))
	}
	if a.Roots != nil {
		declared := `{"listChanged":true}`
		if modern { // roots are part of each answer, so no notification exists
			declared = "{}"
		}
		b = member(b, "roots", []byte(declared))
	}
	if len(extensions) > 0 {
		all := []byte{'{'}
		for _, e := range extensions {
			all = member(all, e, []byte("{}"))
		}
		b = member(b, "extensions", append(all, '}'))
	}
	if settings != nil {
		b = member(b, "experimental", append(member([]byte{'{'}, metaSettings, settings), '}'))
	}
	return append(b, '}')
}

// RootsResult is the answer to roots/list.
func (a Answers) RootsResult() json.RawMessage {
	b, err := json.Marshal(struct {
		Roots []Root `json:"roots"`
	}{a.Roots})
	if err != nil || a.Roots == nil {
		return json.RawMessage(`{"roots":[]}`)
	}
	return b
}

// Check returns a *jsonrpc.Error for a request of the server that was not declared, or that exceeds its bounds.
func (a Answers) Check(method string, params []byte) error {
	switch method {
	case MethodRoots:
		if a.Roots == nil {
			return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
				"Roots not supported: no roots are configured for this server")
		}
	case MethodSample:
		switch {
		case !a.Sampling:
			return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Sampling denied: it is not configured for this server")
		case len(params) > maxSampleParams:
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a request for sampling must not have more than %d bytes",
				maxSampleParams)
		case rawjson.Field(params, "tools") != nil || rawjson.Field(params, "toolChoice") != nil:
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				"tools in sampling are not supported, and were not declared")
		}
	case MethodElicit:
		mode, given := rawjson.ParseString(rawjson.Field(params, "mode"))
		switch {
		case !a.Form && !a.URL:
			return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
				"Elicitation denied: it is not configured for this server")
		case given && mode == "url" && !a.URL, (!given || mode == "form") && !a.Form, given && mode != "url" &&
			mode != "form":
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "elicitation in mode %q is not supported", mode)
		case len(params) > maxElicitParams:
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "an elicitation must not have more than %d bytes",
				maxElicitParams)
		}
	default:
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
	}
	return nil
}

// openCall is a running call, during which the server may ask questions.
type openCall struct {
	ctx   context.Context // ends with the call
	ask   func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	limit *patience.Limit
	// caller is the client behind the call, or nil if there is none.
	caller *Caller
	// aside marks a request other than the call of a tool. Servers seldom ask during such a request.
	aside bool
}

// openCalls contains the running calls of a connection, by the ids of their requests.
type openCalls struct {
	mu        sync.Mutex
	byID      map[int64]*openCall
	questions int
}

func (o *openCalls) add(id int64, call *openCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byID == nil {
		o.byID = map[int64]*openCall{}
	}
	o.byID[id] = call
}

func (o *openCalls) remove(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byID, id)
}

// find returns the call to which a question belongs: the call on whose response stream the question came, or else the
// newest call of a tool, since a stream of messages says no more. A request that is no call of a tool gets a question
// only if nothing else is open: its client may be another one than the client whose call made the server ask. find
// returns nil if there is no such call.
func (o *openCalls) find(via int64) *openCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	if call := o.byID[via]; call != nil && call.ctx.Err() == nil {
		return call
	}
	newest := int64(0)
	var asides []*openCall
	for id, call := range o.byID {
		switch {
		case call.ctx.Err() != nil:
		case call.aside:
			asides = append(asides, call)
		default:
			newest = max(newest, id)
		}
	}
	if newest == 0 && len(asides) == 1 {
		return asides[0]
	}
	return o.byID[newest]
}

// only returns the call to which a message certainly belongs: the call on whose response stream the message came, or
// the only open call. It returns nil if there is none.
func (o *openCalls) only(via int64) *openCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	if call := o.byID[via]; call != nil || len(o.byID) != 1 {
		return call
	}
	for _, call := range o.byID {
		return call
	}
	return nil
}

// enter counts an open question. It returns false if there are too many.
func (o *openCalls) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.questions >= maxQuestions {
		return false
	}
	o.questions++
	return true
}

func (o *openCalls) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.questions--
}

// answerServer answers a request of a legacy server. It runs in a separate goroutine, so that only the server waits
// for the person who is asked.
func (c *Client) answerServer(ctx context.Context, r *jsonrpc.Request) ([]byte, error) {
	var caller *Caller
	if call := c.calls.find(r.Via); call != nil {
		caller = call.caller
	}
	if err := c.cfg.Answers.For(caller).Check(r.Method, r.Params); err != nil {
		return nil, err
	}
	if r.Method == MethodRoots && !c.cfg.Answers.AsksForRoots(caller) {
		return c.answers().RootsResult(), nil
	}
	if !c.calls.enter() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "more than %d questions are open", maxQuestions)
	}
	defer c.calls.leave()
	for {
		call := c.calls.find(r.Via)
		ask := c.cfg.Asker
		if call != nil {
			ask = call
		}
		if ask == nil {
			return unasked(r.Method)
		}
		result, err := ask.Ask(ctx, r.Method, r.Params)
		// Over a stream, the question may belong to another call, which is still running.
		if err != nil && call != nil && call.ctx.Err() != nil && ctx.Err() == nil && r.Via == 0 &&
			c.calls.find(0) != nil {
			continue
		}
		return result, answerError(err)
	}
}

// Ask passes a question of the server to the caller of the call. The timeout of the call pauses meanwhile.
func (o *openCall) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.ctx, func() { cancel(errCallEnded) })()
	defer o.limit.Pause()()
	return o.ask(ctx, method, params)
}

// errCallEnded is the cause with which a question is cancelled when its call ends.
var errCallEnded = errors.New("the call that asked has ended")

// unasked returns the answer to a server's question if there is no [Asker].
func unasked(method string) ([]byte, error) {
	if method == MethodElicit {
		return []byte(`{"action":"decline"}`), nil
	}
	return nil, jsonrpc.Errorf(codeRejected, "Sampling denied: it is answered during a tool call only")
}

// answerError returns the JSON-RPC error for a question that could not be answered.
func answerError(err error) error {
	var rpc *jsonrpc.Error
	if err == nil || errors.As(err, &rpc) {
		return err
	}
	switch tenon.ErrorCode(err) {
	case tenon.CodeDenied, tenon.CodeLimit:
		return jsonrpc.Errorf(codeRejected, "%s", err)
	case tenon.CodeInvalid:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err)
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", err)
}

// urlRequired converts the error of a legacy server that requires visits to URLs to requests for input. It returns
// nil for any other error.
func (c *Client) urlRequired(err error) *tenon.InputRequired {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != CodeURLElicitation || c.isModern() || !c.cfg.Answers.URL {
		return nil
	}
	requests := []byte{'{'}
	n := 0
	for e := range rawjson.Elements(rawjson.Field(rpc.Data, "elicitations")) {
		if mode := rawjson.String(rawjson.Field(e, "mode")); mode != "url" {
			continue
		}
		n++
		request := append(member(text([]byte{'{'}, "method", MethodElicit), "params", e), '}')
		requests = member(requests, strconv.Itoa(n), request)
		if n == maxQuestions {
			break
		}
	}
	if n == 0 {
		return nil
	}
	return &tenon.InputRequired{Requests: append(requests, '}')}
}

// accepted reports whether a person has accepted everything.
func accepted(responses json.RawMessage) bool {
	for _, v := range rawjson.Members(responses) {
		if rawjson.String(rawjson.Field(v, "action")) != "accept" {
			return false
		}
	}
	return true
}

var _ Asker = (*openCall)(nil)
