package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/transcript"
)

// completionRequest is the body of POST /v1/chat/completions. Unsupported members that would change the answer also
// have a field, so that they can be refused by name. For other members see [call.checkNames].
type completionRequest struct {
	Model       string            `json:"model"`
	Messages    []json.RawMessage `json:"messages"`
	Stream      bool              `json:"stream"`
	Options     *streamOptions    `json:"stream_options"`
	MaxTokens   int               `json:"max_tokens"`
	MaxComplete int               `json:"max_completion_tokens"`
	Temperature *float64          `json:"temperature"`
	TopP        *float64          `json:"top_p"`
	Presence    *float64          `json:"presence_penalty"`
	Frequency   *float64          `json:"frequency_penalty"`
	TopK        int               `json:"top_k"`
	Seed        *int64            `json:"seed"`
	Stop        json.RawMessage   `json:"stop"`
	Effort      string            `json:"reasoning_effort"`
	Format      *openFormat       `json:"response_format"`
	Tools       []openTool        `json:"tools"`
	ToolChoice  json.RawMessage   `json:"tool_choice"`
	Parallel    *bool             `json:"parallel_tool_calls"`

	N            *int            `json:"n"`
	Functions    json.RawMessage `json:"functions"`
	FunctionCall json.RawMessage `json:"function_call"`
	Logprobs     *bool           `json:"logprobs"`
	TopLogprobs  *int            `json:"top_logprobs"`
	LogitBias    json.RawMessage `json:"logit_bias"`
	Modalities   []string        `json:"modalities"`
	Audio        json.RawMessage `json:"audio"`
	Prediction   json.RawMessage `json:"prediction"` // ignored, because it would only make an answer faster
	Web          json.RawMessage `json:"web_search_options"`
	Verbosity    string          `json:"verbosity"`

	stop   []string
	choice string // in the form of [host.Question.ToolChoice]
	output json.RawMessage
	client []tenon.Tool
	talk   conversation
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}

type openFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// openTool is a tool of the client.
type openTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// openChosen is a tool choice that names a tool, or a list of tools.
type openChosen struct {
	openTool
	Allowed struct {
		Mode  string     `json:"mode"`
		Tools []openTool `json:"tools"`
	} `json:"allowed_tools"`
}

// sampling returns the settings of the model, or nil if the request has none.
func (q *completionRequest) sampling() *agent.Sampling {
	s := agent.Sampling{MaxTokens: q.MaxTokens, Temperature: q.Temperature, TopP: q.TopP, TopK: q.TopK, Seed: q.Seed,
		Stop: q.stop, Effort: q.Effort, Serial: q.Parallel != nil && !*q.Parallel, Verbosity: q.Verbosity}
	if q.Logprobs != nil && *q.Logprobs {
		none := 0
		s.Logprobs = cmp.Or(q.TopLogprobs, &none)
	}
	if q.MaxComplete != 0 {
		s.MaxTokens = q.MaxComplete
	}
	if nonZero(q.Presence) {
		s.Presence = q.Presence
	}
	if nonZero(q.Frequency) {
		s.Frequency = q.Frequency
	}
	if s.IsZero() {
		return nil
	}
	return &s
}

func nonZero(f *float64) bool { return f != nil && *f != 0 }

// isSet reports whether a JSON value is present and not null, [], {} or "".
func isSet(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "[]", "{}", `""`:
		return false
	}
	return true
}

// unsupported returns the name of the first unsupported parameter in the request, or "".
func (q *completionRequest) unsupported() string {
	switch {
	case q.N != nil && *q.N != 1:
		return "n other than 1"
	case isSet(q.Functions), isSet(q.FunctionCall):
		return "functions and function_call, which tools and tool_choice have replaced"
	case q.TopLogprobs != nil && *q.TopLogprobs > 0 && (q.Logprobs == nil || !*q.Logprobs):
		return "top_logprobs without logprobs"
	case isSet(q.LogitBias):
		return "logit_bias"
	case len(q.Modalities) > 0 && (len(q.Modalities) > 1 || q.Modalities[0] != "text"), isSet(q.Audio):
		return "modalities other than text"
	case isSet(q.Web):
		return "web_search_options"
	}
	return ""
}

// readCompletion parses and checks the body.
func (c *call) readCompletion() (*completionRequest, error) {
	q := &completionRequest{}
	if err := c.decode(q, false); err != nil {
		return nil, err
	}
	if err := c.checkNames(); err != nil {
		return nil, err
	}
	if what := q.unsupported(); what != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "not supported: %s; leave the parameter out", what)
	}
	for _, read := range []func() error{q.readStop, q.readFormat, q.readTools, q.readChoice} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	if s := q.sampling(); s != nil && q.MaxComplete != 0 {
		if err := model.CheckRanges(s, map[string]string{"max_tokens": "max_completion_tokens"}); err != nil {
			return nil, err
		}
	}
	var err error
	if q.talk, err = c.readMessages(q.Messages); err != nil {
		return nil, err
	}
	_, err = c.openAgent(q.Model)
	return q, err
}

// question returns the question of a request that begins a run.
func (q *completionRequest) question() (host.Question, error) {
	h := host.Question{Text: q.talk.question, Files: q.talk.files, Agent: q.Model, Sampling: q.sampling(),
		System: q.talk.system, Output: q.output, ClientTools: q.client, ToolChoice: q.choice}
	if len(q.talk.before) == 0 {
		return h, nil
	}
	b, err := encode(q.talk.before)
	if err != nil {
		return h, tenon.Errorf(tenon.CodeInvalid, "the messages cannot be read: %w", err)
	}
	h.History, err = transcript.Read(bytes.NewReader(b))
	return h, err
}

// readStop reads stop: a text, or a list of texts.
func (q *completionRequest) readStop() error {
	if !isSet(q.Stop) {
		return nil
	}
	var one string
	if json.Unmarshal(q.Stop, &one) == nil {
		q.stop = []string{one}
		return nil
	}
	if json.Unmarshal(q.Stop, &q.stop) != nil {
		return tenon.Errorf(tenon.CodeInvalid, "stop must be a text or a list of texts")
	}
	return nil
}

// readFormat reads response_format.
func (q *completionRequest) readFormat() error {
	if q.Format == nil {
		return nil
	}
	switch q.Format.Type {
	case "", "text":
	case "json_object":
		q.output = json.RawMessage(`{"type":"object"}`)
	case "json_schema":
		if q.Format.Schema == nil || !isSet(q.Format.Schema.Schema) {
			return tenon.Errorf(tenon.CodeInvalid, "response_format json_schema needs json_schema.schema")
		}
		q.output = q.Format.Schema.Schema
	default:
		return tenon.Errorf(tenon.CodeInvalid, "not supported: response_format '%s'; text, json_object and "+
			"json_schema are", tenon.Visible(q.Format.Type))
	}
	return nil
}

// readTools reads the tools of the client.
func (q *completionRequest) readTools() error {
	for i, t := range q.Tools {
		if t.Type != "function" {
			return tenon.Errorf(tenon.CodeInvalid, "not supported: tools[%d] of type '%s'; only function is", i,
				tenon.Visible(t.Type))
		}
		q.client = append(q.client, tenon.Tool{Name: t.Function.Name, Description: t.Function.Description,
			Input: t.Function.Parameters})
	}
	return nil
}

// readChoice reads tool_choice.
func (q *completionRequest) readChoice() error {
	if !isSet(q.ToolChoice) {
		return nil
	}
	var word string
	if json.Unmarshal(q.ToolChoice, &word) == nil {
		choices := map[string]string{"auto": agent.ToolChoiceAuto, "none": agent.ToolChoiceNone,
			"required": agent.ToolChoiceAny}
		if q.choice = choices[word]; q.choice == "" {
			return tenon.Errorf(tenon.CodeInvalid, "tool_choice must be auto, none, required or a function, not '%s'",
				tenon.Visible(word))
		}
		return nil
	}
	var named openChosen
	if err := exactjson.DecodeOpen(q.ToolChoice, &named); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "tool_choice is not valid: %s", misfit(err))
	}
	if list := named.Allowed.Tools; named.Type == "allowed_tools" && len(list) > 0 {
		choice := tenon.Choice{Mode: "auto"}
		if named.Allowed.Mode == "required" {
			choice.Mode = "any"
		}
		for _, t := range list {
			choice.Names = append(choice.Names, t.Function.Name)
		}
		q.choice = choice.String()
		return nil
	}
	if named.Type != "function" || named.Function.Name == "" {
		return tenon.Errorf(tenon.CodeInvalid, "not supported: tool_choice of type '%s'; function with a name and "+
			"allowed_tools with tools are",
			tenon.Visible(named.Type))
	}
	q.choice = named.Function.Name
	return nil
}
