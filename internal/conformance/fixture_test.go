package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// object is a JSON object.
type object = map[string]any

// encode returns a value as JSON.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: the values of this package always encode
	}
	return b
}

// content returns a tool result with the given content blocks.
func content(blocks ...any) (json.RawMessage, error) { return encode(object{"content": blocks}), nil }

// words returns a content block of text.
func words(text string) object { return object{"type": "text", "text": text} }

// fixture is the server that the suite's scenarios need. It speaks one era. In the legacy era it asks its client by
// sending requests, in the modern era by returning input_required results. In the legacy era it puts the key of each
// question into _meta, because requests have no keys there.
type fixture struct {
	*mcp.Server
	mu      sync.Mutex
	changed int // number of tools added so far
}

// The image and the sound of the fixture, in base64.
const (
	image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	sound = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

// serveFixture serves the fixture over Streamable HTTP in one era, and returns its URL.
func serveFixture(t *testing.T, era string) string {
	t.Helper()
	f := &fixture{}
	cfg := mcp.ServerConfig{Name: "fixture", Version: "1", Tools: f.tools(), Offers: f.offers, Completions: true,
		NoLegacy: era == mcp.Modern, NoModern: era != mcp.Modern,
		Watch: func(context.Context, string) (func(), error) { return func() {}, nil }}
	var err error
	if f.Server, err = mcp.NewServer(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: f.HTTP(mcp.HTTPConfig{}), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(l) // until Close
	}()
	t.Cleanup(func() {
		_ = web.Close() // Shutdown would wait for questions to clients that have gone (legacy era)
		<-done
	})
	return "http://" + l.Addr().String()
}

// asked holds the requests that a tool sends to its caller, by key.
type asked map[string]object

// elicitation returns a request for one value.
func elicitation(message, name, kind string) object {
	return object{"method": mcp.MethodElicit, "params": object{"mode": "form", "message": message,
		"requestedSchema": object{"type": "object", "properties": object{name: object{"type": kind}},
			"required": []string{name}}}}
}

// sampling returns a request to the caller's model.
func sampling(prompt string) object {
	return object{"method": mcp.MethodSample, "params": object{"maxTokens": 50, "messages": []object{
		{"role": "user", "content": words(prompt)}}}}
}

// roots is a request for the roots.
var roots = object{"method": mcp.MethodRoots, "params": object{}}

// askTime limits the wait for the answer of a legacy caller, which may have gone without a notice.
const askTime = 20 * time.Second

// ask sends the requests to the caller. In the modern era it returns an input_required result until all answers have
// arrived. In the legacy era it leaves out the answers that were refused.
func (a asked) ask(ctx context.Context, r *mcp.ToolRequest, state string) (map[string]json.RawMessage, json.RawMessage) {
	out := map[string]json.RawMessage{}
	if !r.Modern {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		var mu sync.Mutex
		var work sync.WaitGroup
		for key, q := range a {
			params := maps.Clone(q["params"].(object))
			params["_meta"] = object{"tenonhq.github.io/key": key}
			work.Go(func() {
				answer, err := r.Ask(ctx, q["method"].(string), encode(params))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					out[key] = answer
				}
			})
		}
		work.Wait()
		return out, nil
	}
	open := asked{}
	for key, q := range a {
		if v := rawjson.Field(r.Responses, key); rawjson.IsObject(v) {
			out[key] = v
		} else {
			open[key] = q
		}
	}
	if len(open) == 0 {
		return out, nil
	}
	result := object{"resultType": "input_required", "inputRequests": a}
	if state != "" {
		result["requestState"] = state
	}
	return nil, encode(result)
}

// value returns a member of the content of an answer to an elicitation.
func value(answer json.RawMessage, name string) string {
	return rawjson.String(rawjson.Field(rawjson.Field(answer, "content"), name))
}

// toolCall is a tool of the fixture.
type toolCall func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error)

// asks returns a tool that sends its requests once and then returns a text about the answers.
func asks(a asked, state string, say func(map[string]json.RawMessage) string) toolCall {
	return func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		if state != "" && r.State != "" && r.State != state {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid requestState")
		}
		answers, result := a.ask(ctx, r, state)
		if result != nil {
			return result, nil
		}
		return content(words(say(answers)))
	}
}

// raw returns the answers as text.
func raw(answers map[string]json.RawMessage) string { return fmt.Sprintf("%s", answers) }

// says returns a tool with a fixed result.
func says(blocks ...any) toolCall {
	return func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) { return content(blocks...) }
}

// headerTool is a tool with an argument that is also a header (Mcp-Param-Region).
const headerTool = "test_custom_headers"

// tools returns the tools of the fixture.
func (f *fixture) tools() (list []mcp.ServerTool) {
	embedded := object{"type": "resource", "resource": object{"uri": "test://embedded", "mimeType": "text/plain",
		"text": "embedded"}}
	picture := object{"type": "image", "data": image, "mimeType": "image/png"}
	name := asked{"user_name": elicitation("What is your name?", "name", "string")}
	confirm := asked{"confirm": elicitation("Please confirm", "ok", "boolean")}
	all := asked{"user_name": name["user_name"], "greeting": sampling("Greet"), "client_roots": roots}
	ok := func(map[string]json.RawMessage) string { return "state-ok" }
	calls := map[string]toolCall{
		"test_simple_text":            says(words("simple")),
		headerTool:                    says(words("the headers fit")),
		"test_image_content":          says(picture),
		"test_audio_content":          says(object{"type": "audio", "data": sound, "mimeType": "audio/wav"}),
		"test_embedded_resource":      says(embedded),
		"test_multiple_content_types": says(words("mixed"), picture, embedded),
		"test_tool_with_logging":      logs(3),
		"test_logging_tool":           logs(1),
		"test_tool_with_progress":     progress,
		"test_error_handling":         failing,
		"test_streaming_elicitation":  says(words("no requests on this stream")),
		"test_missing_capability":     needsSampling,
		"test_sampling":               asks(asked{"sample": sampling("Hello")}, "", raw),
		"test_elicitation":            asks(asked{"input": elicitation("Who?", "username", "string")}, "", raw),
		"test_trigger_tool_change":    f.change,
		"test_trigger_prompt_change":  f.change,
		"test_input_required_result_elicitation": asks(name, "", func(a map[string]json.RawMessage) string {
			return "Hello, " + value(a["user_name"], "name")
		}),
		"test_input_required_result_sampling":        asks(asked{"capital_question": sampling("Capital of France?")}, "", raw),
		"test_input_required_result_list_roots":      asks(asked{"client_roots": roots}, "", raw),
		"test_input_required_result_request_state":   asks(confirm, "a-state", ok),
		"test_input_required_result_tampered_state":  asks(confirm, "b-state", ok),
		"test_input_required_result_multiple_inputs": asks(all, "c-state", raw),
		"test_input_required_result_multi_round":     rounds,
		"test_input_required_result_capabilities":    declared(all),
		"test_elicitation_sep1034_defaults": asks(asked{"form": form(object{
			"name":     object{"type": "string", "default": "John Doe"},
			"age":      object{"type": "integer", "default": 30},
			"score":    object{"type": "number", "default": 95.5},
			"status":   object{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
			"verified": object{"type": "boolean", "default": true}})}, "", raw),
		"test_elicitation_sep1330_enums": asks(asked{"form": form(enums())}, "", raw),
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		schema := object{"type": "object"}
		if name == headerTool {
			schema["properties"] = object{"region": object{"type": "string", "x-mcp-header": "Region"}}
		}
		list = append(list, mcp.ServerTool{Call: calls[name], Definition: encode(object{"name": name,
			"description": "A tool of the fixture.", "inputSchema": schema})})
	}
	return list
}

// form returns a request for several values.
func form(properties object) object {
	return object{"method": mcp.MethodElicit, "params": object{"mode": "form", "message": "Fill in",
		"requestedSchema": object{"type": "object", "properties": properties}}}
}

// enums returns the schemas for the five ways to specify a choice.
func enums() object {
	titled := func(values ...string) (list []object) {
		for _, v := range values {
			list = append(list, object{"const": v, "title": strings.ToUpper(v)})
		}
		return list
	}
	three := []string{"option1", "option2", "option3"}
	return object{
		"untitledSingle": object{"type": "string", "enum": three},
		"titledSingle":   object{"type": "string", "oneOf": titled("value1", "value2", "value3")},
		"legacyEnum":     object{"type": "string", "enum": three, "enumNames": []string{"One", "Two", "Three"}},
		"untitledMulti":  object{"type": "array", "items": object{"type": "string", "enum": three}},
		"titledMulti":    object{"type": "array", "items": object{"anyOf": titled("value1", "value2", "value3")}},
	}
}

// logs returns a tool that logs.
func logs(n int) toolCall {
	return func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		for i := range n {
			r.Log("info", fmt.Sprintf("message %d", i))
		}
		return content(words("logged"))
	}
}

// progress reports progress.
func progress(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	for i := range 3 {
		r.Progress(float64(i*50), 100, fmt.Sprintf("step %d", i))
	}
	return content(words("done"))
}

// failing returns a result with isError.
func failing(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
	return encode(object{"isError": true, "content": []object{words("this tool fails")}}), nil
}

// needsSampling refuses callers that do not support sampling. In the legacy era it sends a sampling request to find
// out.
func needsSampling(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	can := rawjson.Field(r.Capabilities, "sampling") != nil
	if can && !r.Modern {
		_, err := r.Ask(ctx, mcp.MethodSample, encode(sampling("Hello")["params"]))
		can = err == nil
	}
	if can {
		return content(words("declared"))
	}
	e := jsonrpc.Errorf(-32021, "sampling is required and was not declared")
	e.Data = encode(object{"requiredCapabilities": object{"sampling": object{}}})
	return nil, e
}

// rounds asks two questions, the second one after the answer to the first.
func rounds(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
	one := asked{"step1": elicitation("Step 1: your name?", "name", "string")}
	two := asked{"step2": elicitation("Step 2: your color?", "color", "string")}
	if !r.Modern {
		first, _ := one.ask(ctx, r, "")
		second, _ := two.ask(ctx, r, "")
		return content(words(value(first["step1"], "name") + " likes " + value(second["step2"], "color")))
	}
	name, second := strings.CutPrefix(r.State, "round2 ")
	if !second {
		answers, result := one.ask(ctx, r, "round1")
		if result != nil {
			return result, nil
		}
		r.Responses = nil
		_, result = two.ask(ctx, r, "round2 "+value(answers["step1"], "name"))
		return result, nil
	}
	answers, result := two.ask(ctx, r, r.State)
	if result != nil {
		return result, nil
	}
	return content(words(name + " likes " + value(answers["step2"], "color")))
}

// declared returns a tool that sends only the requests for which its caller declared the capability.
func declared(all asked) toolCall {
	return func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
		of := asked{}
		for key, capability := range map[string]string{"user_name": "elicitation", "greeting": "sampling",
			"client_roots": "roots"} {
			if rawjson.Field(r.Capabilities, capability) != nil {
				of[key] = all[key]
			}
		}
		_, result := of.ask(ctx, r, "")
		if result != nil {
			return result, nil
		}
		return content(words("asked"))
	}
}

// change adds a tool and announces that the lists of tools and prompts have changed.
func (f *fixture) change(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed++
	list := append(f.tools(), mcp.ServerTool{Definition: encode(object{"name": fmt.Sprintf("added_%d", f.changed),
		"description": "added", "inputSchema": object{"type": "object"}}), Call: says(words("added"))})
	if err := f.SetTools(list); err != nil {
		return nil, err
	}
	f.ListChanged("prompts")
	return content(words("changed"))
}
