package record

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// The requests for tools.
const (
	methodList = "tools/list"
	methodCall = "tools/call"
)

// ServerExchange is a file in the folder mcp/SERVER of a cassette: a list of tools, prompts or
// resources, an attempt of a tool call, a prompt, a resource, or a completion. A list is recorded
// only when it changes.
type ServerExchange struct {
	Request ServerRequest `json:"request"`
	// Asked contains the server's requests during the call or the request for a prompt, in order
	// (elicitation and sampling of the older eras). The requests of the modern era are in Response.Input.
	Asked []Asked `json:"asked,omitempty"`
	// Progress contains the progress notifications during the call.
	Progress []tenon.Progress `json:"progress,omitempty"`
	// Response is absent if the process ended before the response.
	Response *ServerResponse `json:"response,omitempty"`
}

// ServerRequest is a request to a server in the terms of the protocol.
type ServerRequest struct {
	// Method is tools/list, tools/call, prompts/list, prompts/get, resources/list, resources/read
	// or completion/complete.
	Method string     `json:"method"`
	Params CallParams `json:"params,omitzero"`
}

// CallParams are the params of tools/call, prompts/get, resources/read or completion/complete. The
// last one has the name of a prompt or the URI of a template.
type CallParams struct {
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	URI       string          `json:"uri,omitempty"`
	// Responses and State answer the input requests of an earlier attempt (2026-07-28).
	Responses json.RawMessage `json:"inputResponses,omitempty"`
	State     string          `json:"requestState,omitempty"`
	Argument  *Argument       `json:"argument,omitempty"`
}

// Argument is the argument or variable for which completion/complete asks.
type Argument struct {
	Name   string            `json:"name"`
	Value  string            `json:"value"`
	Others map[string]string `json:"others,omitempty"` // the other arguments that are known
}

// ServerResponse is a server's answer: a list, a result, or an error.
type ServerResponse struct {
	Tools  []json.RawMessage `json:"tools,omitempty"` // unchanged definitions
	Kinds  map[string]string `json:"kinds,omitempty"` // the kinds of tools without a server, by name
	Items  []json.RawMessage `json:"items,omitempty"` // unchanged prompts or resources
	Result *tenon.Result     `json:"result,omitempty"`
	// Prompt is the result of prompts/get, Contents the result of resources/read.
	Prompt   json.RawMessage `json:"prompt,omitempty"`
	Contents []tenon.Content `json:"contents,omitempty"`
	// Wanted is the result of resources/read that asks for input first.
	Wanted json.RawMessage `json:"wanted,omitempty"`
	// Completion is the result of completion/complete.
	Completion *mcp.Completion `json:"completion,omitempty"`
	// Input is set if the result is not final. It contains the server's input requests.
	Input *tenon.InputRequired `json:"input,omitempty"`
	Error *tenon.Error         `json:"error,omitempty"`
}

// Asked is a request of a server during a call, and its answer.
type Asked struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *tenon.Error    `json:"error,omitempty"`
}

// The bounds of the notifications and requests that are recorded for a call.
const (
	maxProgress = 10_000
	maxAsked    = 1_000
)

// Toolset returns a toolset that records the requests to a server's toolset and its answers. server
// is the name of the server.
func (r *Recorder) Toolset(server string, t tenon.Toolset) tenon.Toolset {
	return &recordingTools{r: r, folder: serverFolder(server), to: t}
}

type recordingTools struct {
	r      *Recorder
	folder string
	to     tenon.Toolset

	mu   sync.Mutex
	last []byte // the last recorded list, encoded
}

// Tools returns the tools. It records the list if it has changed.
func (t *recordingTools) Tools(ctx context.Context) ([]tenon.Tool, error) {
	tools, err := t.to.Tools(ctx)
	x := &ServerExchange{
		Request:  ServerRequest{Method: methodList},
		Response: &ServerResponse{Tools: []json.RawMessage{}},
	}
	for _, tool := range tools {
		x.Response.Tools = append(x.Response.Tools, definition(tool))
		if tool.Kind != "" {
			if x.Response.Kinds == nil {
				x.Response.Kinds = map[string]string{}
			}
			x.Response.Kinds[tool.Remote] = tool.Kind
		}
	}
	if err != nil {
		x.Response = &ServerResponse{Error: asError(err)}
	}
	now, _ := json.Marshal(x.Response) // raw values were validated on arrival
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bytes.Equal(now, t.last) {
		t.last = now
		t.r.prepare(t.folder)
		t.r.begin(t.folder, x)
	}
	return tools, err
}

// definition returns the server's definition of a tool, or an equivalent one.
func definition(t tenon.Tool) json.RawMessage {
	if len(t.Raw) > 0 {
		return t.Raw
	}
	type hints struct {
		Title       string `json:"title,omitempty"`
		ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
		Destructive *bool  `json:"destructiveHint,omitempty"`
		Idempotent  *bool  `json:"idempotentHint,omitempty"`
		OpenWorld   *bool  `json:"openWorldHint,omitempty"`
	}
	d, _ := json.Marshal(struct { // all members encode
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema,omitempty"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations hints           `json:"annotations,omitzero"`
	}{t.Remote, t.Title, t.Description, t.Input, t.Output, hints(t.Annotations)})
	return d
}

// Call forwards a call and records its request, the traffic during the call, and its result.
func (t *recordingTools) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	x := &ServerExchange{Request: requestOf(c)}
	t.r.prepare(t.folder)
	path := t.r.begin(t.folder, x)
	during := &traffic{x: x}
	if c.Progress != nil {
		c.Progress = during.progress(c.Progress)
	}
	if c.Ask != nil {
		c.Ask = during.asks(c.Ask)
	}
	result, err := t.to.Call(ctx, c)
	answer := &ServerResponse{Result: result}
	switch {
	case err != nil:
		answer = &ServerResponse{Error: asError(err)}
	case result.Input != nil:
		answer.Input = result.Input
	}
	during.end(answer, func() { t.r.write(path, x) })
	return result, err
}

// traffic adds what a server sends during a request to the request's exchange.
type traffic struct {
	mu   sync.Mutex // notifications may arrive after the end of a cancelled request
	over bool
	x    *ServerExchange
}

// progress returns a function that records progress and passes it to a function.
func (t *traffic) progress(to func(tenon.Progress)) func(tenon.Progress) {
	return func(p tenon.Progress) {
		t.mu.Lock()
		if !t.over && len(t.x.Progress) < maxProgress {
			t.x.Progress = append(t.x.Progress, p)
		}
		t.mu.Unlock()
		to(p)
	}
}

// asks returns a function that records the requests of a server and the answers of a function to them.
func (t *traffic) asks(ask mcp.AskFunc) mcp.AskFunc {
	return func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		t.mu.Lock()
		i := len(t.x.Asked)
		kept := !t.over && i < maxAsked
		if kept {
			t.x.Asked = append(t.x.Asked, Asked{Method: method, Params: bytes.Clone(params)})
		}
		t.mu.Unlock()
		answer, err := ask(ctx, method, params)
		t.mu.Lock()
		defer t.mu.Unlock()
		if kept && !t.over {
			t.x.Asked[i].Answer = bytes.Clone(answer)
			if err != nil {
				t.x.Asked[i].Answer, t.x.Asked[i].Error = nil, asError(err)
			}
		}
		return answer, err
	}
}

// end records the answer to the request and writes the exchange, which does not change any more.
func (t *traffic) end(answer *ServerResponse, write func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.x.Response = answer
	write()
}

func requestOf(c tenon.Call) ServerRequest {
	r := ServerRequest{Method: methodCall, Params: CallParams{Name: c.Tool, Arguments: c.Arguments}}
	if len(r.Params.Arguments) == 0 {
		r.Params.Arguments = json.RawMessage("{}")
	}
	if c.Input != nil {
		r.Params.Responses, r.Params.State = c.Input.Responses, c.Input.State
	}
	return r
}

var _ tenon.Toolset = (*recordingTools)(nil)
