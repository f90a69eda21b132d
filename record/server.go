package record

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/tenonhq/tenon"
)

// What is asked of a server.
const (
	methodList = "tools/list"
	methodCall = "tools/call"
)

// ServerExchange is one file of a cassette's folder mcp/SERVER: a listing of the
// server's tools, prompts or resources, one attempt to call a tool, a prompt that was
// filled in, or a resource that was read. A listing is written where it differs from
// the last one.
type ServerExchange struct {
	Request ServerRequest `json:"request"`
	// Asked is what the server asked for while the call ran, in order (elicitation and
	// sampling of the older eras). That of the modern era stands in Response.Input.
	Asked []Asked `json:"asked,omitempty"`
	// Progress are the notices that came while the call ran.
	Progress []tenon.Progress `json:"progress,omitempty"`
	// Response is absent where the process ended before there was one.
	Response *ServerResponse `json:"response,omitempty"`
}

// ServerRequest is what was asked of a server, in the protocol's words.
type ServerRequest struct {
	Method string     `json:"method"` // tools/list, tools/call, prompts/list, prompts/get, resources/list, resources/read
	Params CallParams `json:"params,omitzero"`
}

// CallParams are those of a tools/call, prompts/get or resources/read.
type CallParams struct {
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	URI       string          `json:"uri,omitempty"`
	// Responses and State answer what an earlier attempt wanted (2026-07-28).
	Responses json.RawMessage `json:"inputResponses,omitempty"`
	State     string          `json:"requestState,omitempty"`
}

// ServerResponse is a server's answer: a list, a result, or an error.
type ServerResponse struct {
	Tools  []json.RawMessage `json:"tools,omitempty"` // definitions as they came
	Kinds  map[string]string `json:"kinds,omitempty"` // of tools that are no server's: name → kind
	Items  []json.RawMessage `json:"items,omitempty"` // prompts or resources as they came
	Result *tenon.Result     `json:"result,omitempty"`
	// Prompt is the result of a prompts/get, Contents what was read.
	Prompt   json.RawMessage `json:"prompt,omitempty"`
	Contents []tenon.Content `json:"contents,omitempty"`
	// Input is set where the result is not final: what the server wants first.
	Input *tenon.InputRequired `json:"input,omitempty"`
	Error *tenon.Error         `json:"error,omitempty"`
}

// Asked is what a server asked for in the middle of a call, and the answer that it got.
type Asked struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *tenon.Error    `json:"error,omitempty"`
}

// Bounds of what is kept beside the result of one call.
const (
	maxProgress = 10_000
	maxAsked    = 1_000
)

// Toolset returns a toolset that records what a server's toolset is asked and
// answers. The name is the server's.
func (r *Recorder) Toolset(server string, t tenon.Toolset) tenon.Toolset {
	return &recordingTools{r: r, folder: serverFolder(server), to: t}
}

type recordingTools struct {
	r      *Recorder
	folder string
	to     tenon.Toolset

	mu   sync.Mutex
	last []byte // the listing that was written last, encoded
}

// Tools lists the tools, and writes the list where it has changed.
func (t *recordingTools) Tools(ctx context.Context) ([]tenon.Tool, error) {
	tools, err := t.to.Tools(ctx)
	x := &ServerExchange{Request: ServerRequest{Method: methodList}, Response: &ServerResponse{Tools: []json.RawMessage{}}}
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
	now, _ := json.Marshal(x.Response) // raw values were checked when they came
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bytes.Equal(now, t.last) {
		t.last = now
		t.r.prepare(t.folder)
		t.r.begin(t.folder, x)
	}
	return tools, err
}

// definition is a tool as its server defined it, or as it would have.
func definition(t tenon.Tool) json.RawMessage {
	if len(t.Raw) > 0 {
		return t.Raw
	}
	type hints struct {
		ReadOnly    *bool `json:"readOnlyHint,omitempty"`
		Destructive *bool `json:"destructiveHint,omitempty"`
		Idempotent  *bool `json:"idempotentHint,omitempty"`
		OpenWorld   *bool `json:"openWorldHint,omitempty"`
	}
	d, _ := json.Marshal(struct { // nothing in it cannot be encoded
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema,omitempty"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations hints           `json:"annotations,omitzero"`
	}{t.Remote, t.Title, t.Description, t.Input, t.Output, hints(t.Annotations)})
	return d
}

// Call passes a call on and writes what was asked, what came in between and how it
// ended.
func (t *recordingTools) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	x := &ServerExchange{Request: requestOf(c)}
	t.r.prepare(t.folder)
	path := t.r.begin(t.folder, x)
	var mu sync.Mutex // notices may come after the end of a call that was given up
	over := false
	if progress := c.Progress; progress != nil {
		c.Progress = func(p tenon.Progress) {
			mu.Lock()
			if !over && len(x.Progress) < maxProgress {
				x.Progress = append(x.Progress, p)
			}
			mu.Unlock()
			progress(p)
		}
	}
	if ask := c.Ask; ask != nil {
		c.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			i := len(x.Asked)
			kept := !over && i < maxAsked
			if kept {
				x.Asked = append(x.Asked, Asked{Method: method, Params: bytes.Clone(params)})
			}
			mu.Unlock()
			answer, err := ask(ctx, method, params)
			mu.Lock()
			defer mu.Unlock()
			if kept && !over {
				if x.Asked[i].Answer = bytes.Clone(answer); err != nil {
					x.Asked[i].Answer, x.Asked[i].Error = nil, asError(err)
				}
			}
			return answer, err
		}
	}
	result, err := t.to.Call(ctx, c)
	mu.Lock()
	defer mu.Unlock()
	over = true
	x.Response = &ServerResponse{Result: result}
	switch {
	case err != nil:
		x.Response = &ServerResponse{Error: asError(err)}
	case result.Input != nil:
		x.Response.Input = result.Input
	}
	t.r.write(path, x)
	return result, err
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
