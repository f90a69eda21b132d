package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

// refuser is a provider that refuses requests which real providers were seen to refuse, with their error messages. It
// answers all others with "fine". The rules are recorded in reference/models.md, section 7, and in the threads named
// there. They are implemented here a second time, from the providers' messages and independently of tenon's code.
type refuser struct {
	wire    string // anthropic, chat, responses, gemini
	refused []string
	tools   []sentTool // of the last request
}

// sentTool is a tool in a request.
type sentTool struct {
	name, description string
	strict            any
	schema            map[string]any
}

// closedStrict reports whether a strict tool was sent with the closed schema that the provider requires.
func closedStrict(s sentTool) bool {
	return s.strict == true && s.schema["additionalProperties"] == false
}

func (r *refuser) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.tools = sentTools(r.wire, body)
	if why := refusal(r.wire, body); why != "" {
		r.refused = append(r.refused, why)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		b, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": why, "status": "INVALID_ARGUMENT"}})
		_, _ = w.Write(b)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, map[string]string{
		"anthropic": "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"fine\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		"chat":      "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"fine\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"responses": "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"fine\"}]}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
		"gemini":    "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"fine\"}]},\"finishReason\":\"STOP\"}]}\n\n",
	}[r.wire])
}

// sentTools reads the tools of a request.
func sentTools(wire string, body []byte) []sentTool {
	type schema = map[string]any
	var in struct {
		Tools []struct {
			Name, Description, Type string
			Strict                  any
			InputSchema             schema `json:"input_schema"`
			Parameters              schema
			Function                *struct {
				Name, Description string
				Strict            any
				Parameters        schema
			}
			Declarations []struct {
				Name, Description    string
				ParametersJSONSchema schema `json:"parametersJsonSchema"`
				Parameters           schema
			} `json:"functionDeclarations"`
		}
	}
	_ = json.Unmarshal(body, &in) // tenon's requests are valid JSON
	var list []sentTool
	for _, t := range in.Tools {
		switch {
		case t.Function != nil:
			list = append(list, sentTool{t.Function.Name, t.Function.Description, t.Function.Strict, t.Function.Parameters})
		case wire == "gemini":
			for _, d := range t.Declarations {
				s := d.ParametersJSONSchema
				if s == nil {
					s = d.Parameters
				}
				list = append(list, sentTool{d.Name, d.Description, nil, s})
			}
		case t.InputSchema != nil:
			list = append(list, sentTool{t.Name, t.Description, t.Strict, t.InputSchema})
		default:
			list = append(list, sentTool{t.Name, t.Description, t.Strict, t.Parameters})
		}
	}
	return list
}

var (
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicKey  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	openaiName    = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	geminiName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)
	geminiKey     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

// refusal returns the reason why a provider refuses a request, or "".
func refusal(wire string, body []byte) string {
	tools := sentTools(wire, body)
	if most := map[string]int{"chat": 128, "responses": 128}[wire]; most > 0 && len(tools) > most {
		return fmt.Sprintf("Invalid 'tools': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", most, len(tools))
	} else if wire == "gemini" && len(tools) > 512 {
		return "at most 512 function declarations can be specified"
	}
	seen := map[string]bool{}
	for i, t := range tools {
		if seen[t.name] {
			return "tools: Tool names must be unique."
		}
		seen[t.name] = true
		if why := refusedTool(wire, i, t); why != "" {
			return why
		}
	}
	return ""
}

func refusedTool(wire string, i int, t sentTool) string {
	switch wire {
	case "anthropic":
		return refusedByAnthropic(i, t)
	case "gemini":
		return refusedByGemini(t)
	}
	return refusedByOpenAI(i, t)
}

// root returns the first of the words that is a keyword at the root of the schema.
func (t sentTool) root(words ...string) string {
	for _, w := range words {
		if _, ok := t.schema[w]; ok {
			return w
		}
	}
	return ""
}

func refusedByAnthropic(i int, t sentTool) string {
	if !anthropicName.MatchString(t.name) {
		return fmt.Sprintf("tools.%d.custom.name: String should match pattern '%s'", i, anthropicName)
	}
	if t.schema["type"] != "object" {
		return fmt.Sprintf("tools.%d.custom.input_schema.type: Field required", i)
	}
	props, _ := t.schema["properties"].(map[string]any)
	for k := range props {
		if !anthropicKey.MatchString(k) {
			return fmt.Sprintf("tools.%d.custom.input_schema.properties: Property keys should match pattern '%s'", i, anthropicKey)
		}
	}
	if t.root("oneOf", "allOf", "anyOf") != "" {
		return fmt.Sprintf("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
	}
	return ""
}

func refusedByGemini(t sentTool) string {
	if !geminiName.MatchString(t.name) {
		return "Invalid function name. Must start with a letter or an underscore"
	}
	sum, why := 0, ""
	nodes(t.schema, 0, func(o map[string]any, depth int) {
		if n, ok := o["maxItems"].(float64); ok {
			sum += int(n)
		}
		own, _ := o["properties"].(map[string]any)
		for k := range own {
			if !geminiKey.MatchString(k) {
				why = "Request contains an invalid argument."
			}
		}
		if depth > 26 {
			why = "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth."
		}
		if ref, ok := o["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			why = "reference to undefined schema"
		}
	})
	if sum > 960 {
		return "Request contains an invalid argument."
	}
	return why
}

func refusedByOpenAI(i int, t sentTool) string {
	if len(t.name) > 64 {
		return fmt.Sprintf("Invalid 'tools[%d].function.name': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", i, len(t.name))
	}
	if !openaiName.MatchString(t.name) {
		return fmt.Sprintf("Invalid 'tools[%d].function.name': string does not match pattern.", i)
	}
	if t.schema["type"] != "object" || t.root("oneOf", "anyOf", "allOf", "enum", "not") != "" {
		return "Invalid schema for function '" + t.name + "': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
	}
	why := ""
	nodes(t.schema, 0, func(o map[string]any, depth int) {
		list, _ := o["type"].([]any)
		if _, ok := o["items"]; !ok && (o["type"] == "array" || slices.Contains(list, any("array"))) {
			why = "Invalid schema for function '" + t.name + "': array schema missing items."
		}
		if t.strict != true {
			return
		}
		own, _ := o["properties"].(map[string]any)
		required, _ := o["required"].([]any)
		if o["type"] == "object" && (o["additionalProperties"] != false || len(required) != len(own)) {
			why = "Invalid schema for function '" + t.name + "': 'additionalProperties' is required to be supplied and to be false."
		}
		if depth > 5 {
			why = "Invalid schema for function '" + t.name + "': 6 levels of nesting exceeds limit of 5."
		}
	})
	return why
}

// nodes calls visit for each schema within a schema.
func nodes(v any, depth int, visit func(map[string]any, int)) {
	o, ok := v.(map[string]any)
	if !ok {
		return
	}
	visit(o, depth)
	for k, v := range o {
		switch k {
		case "properties", "$defs":
			for _, p := range v.(map[string]any) {
				nodes(p, depth+1, visit)
			}
		case "items":
			nodes(v, depth+1, visit)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := v.([]any)
			for _, e := range list {
				nodes(e, depth, visit)
			}
		}
	}
}

type rejection struct {
	name, wire string
	tools      []string // NAME=SCHEMA
	options    string
	sent       string // the name with which the first tool is sent; "" if it is left out
	check      func(sentTool) bool
}

// TestRecordedRejections sends tools that providers are known to refuse. tenon must send each of them in a form that
// the provider accepts, or leave it out and give the reason. The other tool of the request must always be there.
func TestRecordedRejections(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 28) + `{"type":"string"}` + strings.Repeat(`}}`, 28)
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("t%03d=%s", i, objectOf("")))
		}
		return list
	}
	strict := `{"openai":{"strict":true}}`
	for _, tt := range []rejection{
		// home-assistant/core#147760, anthropics/claude-code#96152 and #21492, danny-avila/LibreChat#13162
		{name: "characters of a name", wire: "anthropic", tools: []string{"light.turn on=" + objectOf("")}, sent: "light-turn-on"},
		{name: "a name of 130 characters", wire: "anthropic", tools: []string{strings.Repeat("n", 130) + "=" + objectOf("")}, sent: strings.Repeat("n", 55)},
		{name: "property keys", wire: "anthropic", tools: []string{"list=" + objectOf(`"filter[id]":{"type":"string"}`)}},
		{name: "a property key of 65 characters", wire: "anthropic", tools: []string{"list=" + objectOf(`"`+strings.Repeat("k", 65)+`":{}`)}},
		{name: "a union at the top", wire: "anthropic", tools: []string{`u={"type":"object","oneOf":[` + objectOf(`"a":{"type":"string"}`) + `,` + objectOf(`"b":{"type":"string"}`) + `]}`}, sent: "u",
			check: func(s sentTool) bool { return len(s.schema["properties"].(map[string]any)) == 2 }},
		{name: "no type", wire: "anthropic", tools: []string{`e={}`}, sent: "e"},
		{name: "true for a schema", wire: "anthropic", tools: []string{`e=true`}, sent: "e"},
		// mastra-ai/mastra#6302, sst/opencode#1814, openai/openai-openapi#76, tidyverse/ellmer#671
		{name: "a name of 67 characters", wire: "chat", tools: []string{strings.Repeat("n", 67) + "=" + objectOf("")}, sent: strings.Repeat("n", 55)},
		{name: "characters of a name", wire: "chat", tools: []string{"files.read=" + objectOf("")}, sent: "files-read"},
		{name: "129 tools", wire: "chat", tools: many(129)},
		{name: "129 tools", wire: "responses", tools: many(129)},
		{name: "an array without items", wire: "chat", tools: []string{"a=" + objectOf(`"ids":{"type":"array"}`)}, sent: "a"},
		{name: "an array among types, without items", wire: "chat", tools: []string{"a=" + objectOf(`"ids":{"type":["string","array"]}`)}, sent: "a"},
		{name: "a tuple without items", wire: "responses", tools: []string{"a=" + objectOf(`"size":{"anyOf":[{"type":"array","prefixItems":[{"type":"number"}]},{"type":"null"}]}`)}, sent: "a"},
		{name: "a union at the top", wire: "chat", tools: []string{`u={"type":"object","anyOf":[` + objectOf(`"a":{}`) + `]}`}, sent: "u"},
		{name: "an enum at the top", wire: "responses", tools: []string{`u={"type":"object","enum":[{}]}`}, sent: "u"},
		{name: "no object", wire: "responses", tools: []string{`n={"type":"string"}`}, sent: "n"},
		{name: "strict with an optional argument", wire: "chat", options: strict, sent: "s", tools: []string{`s={"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`},
			check: closedStrict},
		{name: "strict and open", wire: "responses", options: strict, sent: "s", tools: []string{`s={"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
			check: closedStrict},
		{name: "strict and deep", wire: "chat", options: strict, sent: "s", tools: []string{"s=" + strings.Repeat(`{"type":"object","required":["a"],"additionalProperties":false,"properties":{"a":`, 7) + `{"type":"string"}` + strings.Repeat(`}}`, 7)},
			check: func(s sentTool) bool { return s.strict != true }},
		// SDK comments, google-gemini/gemini-cli#19083 and #5923, googleapis/python-genai#2170, gemini-cli#13326
		{name: "a name that begins with a digit", wire: "gemini", tools: []string{"2do=" + objectOf("")}, sent: "_2do"},
		{name: "513 tools", wire: "gemini", tools: many(513)},
		{name: "nesting", wire: "gemini", tools: []string{"d=" + deep}},
		{name: "a parameter's name", wire: "gemini", tools: []string{"p=" + objectOf(`"page-size":{"type":"integer"}`)}},
		{name: "the sum of maxItems", wire: "gemini", tools: []string{"m=" + objectOf(`"a":{"type":"array","items":{},"maxItems":500},"b":{"type":"array","items":{},"maxItems":500}`)}, sent: "m"},
		{name: "a reference to nothing", wire: "gemini", tools: []string{"r=" + objectOf(`"a":{"$ref":"other.json#/x"}`)}, sent: "r"},
	} {
		t.Run(tt.wire+" "+tt.name, func(t *testing.T) { checkRejection(t, tt) })
	}
}

// checkRejection checks that the provider would refuse the unchanged tools, and that it accepts tenon's request.
func checkRejection(t *testing.T, tt rejection) {
	r := &refuser{wire: tt.wire}
	s := httptest.NewServer(r)
	defer s.Close()
	m := map[string]model.Config{
		"anthropic": {Provider: "anthropic", Model: "m"}, "chat": {Provider: "openai", Model: "m"},
		"responses": {Provider: "openai", API: model.APIResponses, Model: "m"}, "gemini": {Provider: "gemini", Model: "m"},
	}[tt.wire]
	m.BaseURL, m.APIKey = s.URL, tenon.NewSecret("k")
	tools := fixed{{Remote: "zz_plain", Input: json.RawMessage(objectOf(`"a":{"type":"string"}`))}}
	for _, one := range tt.tools {
		name, schema, _ := strings.Cut(one, "=")
		tools = append(tools, tenon.Tool{Remote: name, Input: json.RawMessage(schema)})
	}
	naive := naiveRequest(tt.wire, tools, tt.options)
	if refusal(tt.wire, naive) == "" {
		t.Fatalf("nobody refuses %s", naive)
	}
	cfg := &config.Config{Models: map[string]model.Config{"m": m}}
	if tt.options != "" {
		for _, tool := range tools {
			cfg.Tools = withOptions(cfg.Tools, tool.Remote, tt.options)
		}
	}
	var log bytes.Buffer
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"x": tools},
		Logger: slog.New(slog.NewTextHandler(&log, nil)), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	report, _ := ask(t, h, host.Question{Text: "q"})
	if report.Answer != "fine" || len(r.refused) > 0 {
		t.Fatalf("%s %v, refused: %q", report.State, report.Error, r.refused)
	}
	names := map[string]sentTool{}
	for _, s := range r.tools {
		names[s.name] = s
	}
	if len(tt.tools) > 1 {
		if _, ok := names["find_tools"]; !ok || len(names) > 10 {
			t.Errorf("%d tools are sent", len(names))
		}
		return
	}
	if _, ok := names["zz_plain"]; !ok {
		t.Errorf("the tool beside it is gone: %v", names)
	}
	if tt.sent == "" {
		if len(names) != 1 || !strings.Contains(log.String(), "a tool is not offered: ") {
			t.Errorf("%d tools are sent; the log: %s", len(names), log.String())
		}
		return
	}
	for name, s := range names {
		if name != "zz_plain" && (!strings.HasPrefix(name, tt.sent) || tt.check != nil && !tt.check(s)) {
			t.Errorf("sent: %+v", s)
		}
	}
	if len(names) != 2 {
		t.Errorf("%d tools are sent", len(names))
	}
}

// objectOf returns the schema of an object with the properties.
func objectOf(props string) string {
	return `{"type":"object","properties":{` + props + `}}`
}

// naiveRequest returns a request with the tools exactly as their server defines them.
func naiveRequest(wire string, tools []tenon.Tool, options string) []byte {
	var list []any
	for _, t := range tools {
		one := map[string]any{"name": t.Remote}
		if options != "" {
			one["strict"] = true
		}
		switch wire {
		case "anthropic":
			one["input_schema"] = t.Input
		case "gemini":
			one["parametersJsonSchema"] = t.Input
		default:
			one["parameters"] = t.Input
		}
		if wire == "chat" {
			one = map[string]any{"type": "function", "function": one}
		}
		list = append(list, one)
	}
	if wire == "gemini" {
		list = []any{map[string]any{"functionDeclarations": list}}
	}
	b, _ := json.Marshal(map[string]any{"tools": list})
	return b
}

func withOptions(tools map[string]catalog.Tool, remote, options string) map[string]catalog.Tool {
	if tools == nil {
		tools = map[string]catalog.Tool{}
	}
	var o map[string]json.RawMessage
	_ = json.Unmarshal([]byte(options), &o) // it is ours
	tools[remote] = catalog.Tool{Server: "x", RemoteName: remote, ProviderOptions: o}
	return tools
}

// TestRefusedToolThatHasToBeFound checks that a tool that a model has to find first is converted to its provider's form
// when it is found, and not at the beginning of each run.
func TestRefusedToolThatHasToBeFound(t *testing.T) {
	r := &refuser{wire: "anthropic"}
	s := httptest.NewServer(r)
	defer s.Close()
	few := 1
	cfg := &config.Config{ToolSearch: catalog.Search{Threshold: &few}, Models: map[string]model.Config{"m": {Provider: "anthropic", Model: "m", BaseURL: s.URL, APIKey: tenon.NewSecret("k")}}}
	tools := fixed{{Remote: "refused", Input: json.RawMessage(`{"type":"object","properties":{"a b":{"type":"string"}}}`)}, {Remote: "taken", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}
	var log bytes.Buffer
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"x": tools},
		Logger: slog.New(slog.NewTextHandler(&log, nil)), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if report, _ := ask(t, h, host.Question{Text: "q"}); report.Answer != "fine" || len(r.refused) > 0 {
		t.Fatalf("%s %v, refused: %q", report.State, report.Error, r.refused)
	}
	if len(r.tools) != 1 || r.tools[0].name != "find_tools" {
		t.Errorf("sent: %+v", r.tools)
	}
	if got := log.String(); !strings.Contains(got, "MCP orchestration enabled: 2 tools available") || strings.Contains(got, "a tool is not offered") {
		t.Error(got)
	}
}
