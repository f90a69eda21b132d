package testserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// askers returns the tools that send requests to their caller, in the way of its era.
func (s *server) askers() []entry {
	return []entry{
		{"ask_form", "Asks for input with a form and returns the answer",
			`"message":{"type":"string"},"schema":{"type":"object"},"times":{"type":"integer","default":1},` +
				`"give_up_ms":{"type":"integer","description":"take the question back"},"leave":{"type":"boolean",` +
				`"description":"end without waiting"}`,
			``, changes, s.askForm},
		{"ask_url", "Asks a person to visit a URL", `"url":{"type":"string"},"message":{"type":"string"}`, `["url"]`,
			changes, s.askURL},
		{"need_url", "Is refused until a URL was visited (2025-11-25, -32042)", `"url":{"type":"string"}`, `["url"]`,
			changes, s.needURL},
		{"sample", "Asks for an answer of the caller's model",
			`"prompt":{"type":"string"},"max_tokens":{"type":"integer","default":100},"times":{"type":"integer",` +
				`"default":1},"tools":{"type":"boolean"}`, `["prompt"]`, changes, s.sample},
		{"roots", "Asks for the caller's roots", ``, ``, reads,
			func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
				return s.putTo(ctx, r, "roots", mcp.MethodRoots, nil)
			}},
		{"ask_mixed", "Asks for a name, roots and an answer of the model at once (2026-07-28)", ``, ``,
			changes, askMixed},
	}
}

// nameSchema is the default form of ask_form.
const nameSchema = `{"type":"object","properties":{"name":{"type":"string","title":"Your name","minLength":2},` +
	`"age":{"type":"integer","minimum":0,"maximum":150},` +
	`"colour":{"type":"string","enum":["red","green"],"default":"green"}},"required":["name"]}`

func (s *server) askForm(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct {
		Message string
		Schema  json.RawMessage
		Times   int
		GiveUp  int `json:"give_up_ms"`
		Leave   bool
	}](r)
	if err != nil {
		return nil, err
	}
	in.Message = cmp.Or(in.Message, "Who are you?")
	if len(in.Schema) == 0 {
		in.Schema = json.RawMessage(nameSchema)
	}
	params, err := json.Marshal(map[string]any{"message": in.Message, "requestedSchema": in.Schema})
	if err != nil {
		return nil, err
	}
	if in.Leave {
		go func() { _, _ = s.ask(context.WithoutCancel(ctx), r, mcp.MethodElicit, params) }() // the answer is ignored
		time.Sleep(50 * time.Millisecond)
		return textResult("left"), nil
	}
	if in.GiveUp > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(in.GiveUp)*time.Millisecond)
		defer cancel()
	}
	for range in.Times - 1 {
		if _, err := s.ask(ctx, r, mcp.MethodElicit, params); err != nil {
			return nil, err
		}
	}
	return s.putTo(ctx, r, "elicitation", mcp.MethodElicit, params)
}

func (s *server) askURL(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ URL, Message string }](r)
	if err != nil {
		return nil, err
	}
	in.Message = cmp.Or(in.Message, "Sign in there, please.")
	params, err := json.Marshal(map[string]any{"mode": "url", "message": in.Message, "url": in.URL,
		"elicitationId": "e-1"})
	if err != nil {
		return nil, err
	}
	return s.putTo(ctx, r, "elicitation", mcp.MethodElicit, params)
}

func (s *server) needURL(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct{ URL string }](r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.counter++
	first := s.counter == 1
	s.mu.Unlock()
	if !first {
		return textResult("thank you"), nil
	}
	data, err := json.Marshal(map[string]any{"elicitations": []any{map[string]any{"mode": "url", "elicitationId": "e-1",
		"url": in.URL, "message": "Sign in first, please."}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: mcp.CodeURLElicitation, Message: "URL elicitation required", Data: data}
}

func (s *server) sample(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	in, err := arguments[struct {
		Prompt    string
		MaxTokens int `json:"max_tokens"`
		Times     int
		Tools     bool
	}](r)
	if err != nil {
		return nil, err
	}
	in.MaxTokens = cmp.Or(in.MaxTokens, 100)
	request := map[string]any{"maxTokens": in.MaxTokens, "systemPrompt": "Be brief.",
		"messages": []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": in.Prompt}}}}
	if in.Tools {
		request["tools"] = []any{}
	}
	params, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	for range in.Times - 1 {
		if _, err := s.ask(ctx, r, mcp.MethodSample, params); err != nil {
			return nil, err
		}
	}
	return s.putTo(ctx, r, "sampling", mcp.MethodSample, params)
}

// askMixed asks for three inputs of different kinds in one round.
func askMixed(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	if len(r.Responses) > 0 {
		return textResult(string(r.Responses)), nil
	}
	return json.RawMessage(`{"resultType":"input_required","requestState":"mixed","inputRequests":{` +
		`"name":{"method":"elicitation/create","params":{"message":"Your name?","requestedSchema":` +
		nameSchema + `}},` +
		`"roots":{"method":"roots/list"},` +
		`"capital":{"method":"sampling/createMessage","params":{"maxTokens":50,"messages":[{"role":"user",` +
		`"content":{"type":"text","text":"The capital of France?"}}]}}}}`), nil
}

// putTo asks the caller and returns the answer as text. In the modern era the first call returns the
// question, and the caller must have declared the capability.
func (s *server) putTo(ctx context.Context, r *mcp.ToolRequest, capability, method string,
	params json.RawMessage) (json.RawMessage, error) {
	if !r.Modern {
		answer, err := s.ask(ctx, r, method, params)
		if err != nil {
			return nil, errors.New(err.Error()) // returned as a result: a refusal by the caller is not a protocol error
		}
		return textResult(string(answer)), nil
	}
	if len(r.Responses) > 0 {
		return textResult(string(rawjson.Field(r.Responses, "q"))), nil
	}
	if rawjson.Field(r.Capabilities, capability) == nil {
		e := jsonrpc.Errorf(-32021, "%s denied: the client did not declare it",
			map[string]string{"sampling": "Sampling", "roots": "Roots", "elicitation": "Elicitation"}[capability])
		e.Data = json.RawMessage(fmt.Sprintf(`{"requiredCapabilities":{%q:{}}}`, capability))
		return nil, e
	}
	request := map[string]any{"method": method}
	if params != nil {
		request["params"] = params
	}
	b, err := json.Marshal(map[string]any{"resultType": "input_required", "requestState": "q-1",
		"inputRequests": map[string]any{"q": request}})
	return b, err
}

// ask asks a caller of the legacy era and adds the answer to the counts.
func (s *server) ask(ctx context.Context, r *mcp.ToolRequest, method string,
	params json.RawMessage) (json.RawMessage, error) {
	answer, err := r.Ask(ctx, method, params)
	s.answered(answer, err)
	return answer, err
}

func (s *server) answered(answer json.RawMessage, err error) {
	text := string(answer)
	if err != nil {
		text = err.Error()
	}
	s.count(func(st *Stats) {
		if len(st.Answers) < maxKept {
			st.Answers = append(st.Answers, text)
		}
	})
}

// initialized asks outside of any call if --ask is set.
func (s *server) initialized(ctx context.Context, ask mcp.AskFunc) {
	params := map[string]string{
		mcp.MethodElicit: `{"message":"Who are you?","requestedSchema":` + nameSchema + `}`,
		mcp.MethodSample: `{"maxTokens":10,"messages":[]}`,
	}[s.o.Ask]
	answer, err := ask(ctx, s.o.Ask, json.RawMessage(params))
	s.answered(answer, err)
}
