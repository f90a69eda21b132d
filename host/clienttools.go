package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// maxClientTools bounds the tools of a client in one question.
const maxClientTools = 128

// clientToolName is the form of a client tool's name (OpenAI API reference, function.name).
var clientToolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// clientTools offers the tools of a question that the client executes; see [Question.ClientTools].
type clientTools struct {
	host  *Host
	tools []tenon.Tool
}

// newClientTools checks the client's tools of a question. Errors: invalid.
func (h *Host) newClientTools(list []tenon.Tool) (executor.Toolset, error) {
	if len(list) > maxClientTools {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the question has %d tools of the client; %d is the limit",
			len(list), maxClientTools)
	}
	c := &clientTools{host: h}
	seen := map[string]bool{}
	for _, t := range list {
		switch {
		case !clientToolName().MatchString(t.Name):
			return nil, tenon.Errorf(tenon.CodeInvalid, "the tool '%s' of the client has an invalid name: 1 to 64 "+
				"letters, digits, '_' and '-' are allowed", tenon.Visible(t.Name))
		case seen[t.Name]:
			return nil, tenon.Errorf(tenon.CodeInvalid, "the client has two tools '%s'", t.Name)
		}
		seen[t.Name] = true
		if len(t.Input) == 0 || string(bytes.TrimSpace(t.Input)) == "null" {
			t.Input = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		c.tools = append(c.tools, tenon.Tool{Server: catalog.ClientServer, Remote: t.Name, Name: t.Name,
			Description: t.Description, Input: t.Input})
	}
	return c, nil
}

// Tools implements [executor.Toolset].
func (c *clientTools) Tools(context.Context) ([]tenon.Tool, error) { return c.tools, nil }

// Call implements [executor.Toolset].
func (c *clientTools) Call(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	return c.host.doClient(ctx, s)
}

// doClient carries out a call of a client's tool: it makes the call wait until the client's result is there. It needs
// only the journal, so that any process can continue the run.
func (h *Host) doClient(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	c, err := s.Tool()
	if err != nil {
		return nil, err
	}
	if c.Input == nil {
		return []tenon.Event{{Step: s.Step, Kind: agent.EventInput, Data: encode(agent.Input{})}}, nil
	}
	return executor.Plain(clientResult{}).Call(ctx, s)
}

// clientResult returns the result that the client sent.
type clientResult struct{}

// Tools implements [tenon.Toolset].
func (clientResult) Tools(context.Context) ([]tenon.Tool, error) { return nil, nil }

// Call implements [tenon.Toolset].
func (clientResult) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	var sent map[string]*tenon.Result
	if err := json.Unmarshal(c.Input.Responses, &sent); err != nil || sent[agent.QuestionKey] == nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the client's result of '%s' cannot be read", c.Tool)
	}
	return sent[agent.QuestionKey], nil
}

// clientAnswer makes the answer to a call that waits for the client. Allow has the result in the ruling's arguments: a
// tool result of MCP, or any other JSON, whose text the model gets. Deny makes the call fail with the ruling's reason.
// Errors: invalid.
func clientAnswer(r agent.Ruling) (agent.Answer, error) {
	a := agent.Answer{By: r.By}
	if r.Verdict != tenon.Allow {
		a.Error = tenon.Errorf(tenon.CodeDenied, "%s", agent.RefusalText(r.By, r.Reason))
		return a, nil
	}
	if len(r.Arguments) == 0 {
		return a, tenon.Errorf(tenon.CodeInvalid, "the call waits for the result of the client's tool; send it as "+
			"the arguments")
	}
	result, err := readClientResult(r.Arguments)
	if err != nil {
		return a, err
	}
	a.Responses = encode(map[string]*tenon.Result{agent.QuestionKey: result})
	return a, nil
}

// readClientResult reads a client's result; see [clientAnswer].
func readClientResult(raw json.RawMessage) (*tenon.Result, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return &tenon.Result{Content: []tenon.Content{tenon.Text(text)}}, nil
	}
	var r struct {
		Content    []tenon.Content `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if !json.Valid(raw) {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the client's result is not JSON")
	}
	if exactjson.DecodeOpen(raw, &r) == nil && r.Content != nil {
		return &tenon.Result{Content: r.Content, Structured: r.Structured, IsError: r.IsError}, nil
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(string(raw))}}, nil
}

// checkClientTools refuses a question whose model would not see a tool of the client. It returns the exposed name of
// the tool choice, which names a tool of the client by the client's name. Errors: invalid.
func (h *Host) checkClientTools(q Question, choice string, s *catalog.Snapshot, model string) (string, error) {
	if len(q.ClientTools) == 0 {
		return choice, nil
	}
	exposed := map[string]string{}
	others := map[string]string{} // servers of the agent's tools, by exposed and remote names
	if s != nil {
		for _, t := range h.offered(s, model) {
			if h.kinds[t.Server].clients {
				exposed[t.Remote] = t.Name
			} else {
				others[t.Name], others[t.Remote] = t.Server, t.Server
			}
		}
	}
	var missing, taken []string
	for _, t := range q.ClientTools {
		switch name := exposed[t.Name]; {
		case name == "":
			missing = append(missing, t.Name)
		case name != t.Name && others[t.Name] != "":
			taken = append(taken, "'"+t.Name+"' (of "+others[t.Name]+")")
		}
	}
	if len(taken) > 0 {
		return "", tenon.Errorf(tenon.CodeInvalid, "tools of the client have the names of tools of the agent: %s; the "+
			"agent's own tools are executed here and need not be sent; rename the client's, or exclude the agent's",
			strings.Join(taken, ", "))
	}
	if len(missing) > 0 {
		return "", tenon.Errorf(tenon.CodeInvalid, "model '%s' cannot be offered these tools of the client: %s; "+
			"check their schemas, and whether the model and the agent take tools", model, strings.Join(missing, ", "))
	}
	c := tenon.ParseChoice(choice)
	for i, name := range c.Names {
		c.Names[i] = cmp.Or(exposed[name], name)
	}
	if c.Names == nil {
		return choice, nil
	}
	return c.String(), nil
}

var (
	_ executor.Toolset = (*clientTools)(nil)
	_ tenon.Toolset    = clientResult{}
)
