package testserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/jsonrpc"
)

// prompted handles requests for prompts and, with --prompts, for resources. It returns nil for other
// requests.
func (s *server) prompted(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch name := rawjson.String(rawjson.Field(params, "name")); {
	case method == "prompts/list":
		return s.promptList(), nil
	case method == "prompts/get" && name == "greet_user":
		whom := rawjson.String(rawjson.Field(rawjson.Field(params, "arguments"), "name"))
		text, err := json.Marshal("Please greet " + whom + ".")
		return json.RawMessage(
			`{"description":"Greets a person","messages":[{"role":"user","content":{"type":"text","text":` +
				string(text) + `}}]}`), err
	case s.o.Prompts:
		return s.promptsOffer(method, params)
	case method == "prompts/get":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no prompt %s", name)
	}
	return nil, nil
}

func (s *server) promptList() json.RawMessage {
	list := `{"prompts":[{"name":"greet_user","description":"Greets a person","arguments":[{"name":"name",` +
		`"description":"whom","required":true}]}`
	if s.o.Prompts {
		list += `,{"name":"review","title":"Review","description":"Reviews a change\u001b[31m",` +
			`"arguments":[{"name":"what","description":"what to look at","required":true},{"name":"tone"}]},` +
			`{"name":"hello","description":"Says hello"}`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mutated {
		list += `,{"name":"added_prompt","description":"Came later"}`
	}
	return json.RawMessage(list + "]}")
}

// completions offers the tones of the prompt review, which depend on what is reviewed, and the days of the template.
func completions(params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Ref      struct{ Type, Name, URI string }
		Argument struct{ Name, Value string }
		Context  struct{ Arguments map[string]string }
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no completion request")
	}
	var all []string
	switch {
	case p.Ref.Type == "ref/prompt" && p.Ref.Name == "review" && p.Argument.Name == "tone":
		all = []string{"calm", "careful", "strict"}
		if p.Context.Arguments["what"] == "poem" {
			all = append(all, "cantabile")
		}
	case p.Ref.Type == "ref/resource" && p.Ref.URI == "test://day/{date}" && p.Argument.Name == "date":
		for day := range 150 {
			all = append(all, fmt.Sprintf("day-%03d", day))
		}
	case p.Ref.Type == "ref/prompt":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no prompt %s", p.Ref.Name)
	}
	fits := []string{}
	for _, v := range all {
		if strings.HasPrefix(v, p.Argument.Value) {
			fits = append(fits, v)
		}
	}
	n := len(fits)
	return json.Marshal(map[string]any{"completion": map[string]any{"values": fits, "total": n, "hasMore": false}})
}

// promptsOffer handles requests for the prompts and resources of --prompts.
func (s *server) promptsOffer(method string, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Name, URI string
		Arguments map[string]string
	}
	_ = json.Unmarshal(params, &p) // missing values match nothing below
	switch method {
	case "completion/complete":
		return completions(params)
	case "prompts/get":
		switch p.Name {
		case "hello":
			return json.RawMessage(
				`{"description":"Says hello","messages":[{"role":"user","content":{"type":"text","text":"Say ` +
					`hello."}}]}`), nil
		case "poster": // with only a picture; prompts/list does not have it
			return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"image","mimeType":"image/png",` +
				`"data":"` + base64.StdEncoding.EncodeToString(pixel) + `"}}]}`), nil
		case "mistaken": // likewise; its content is no object
			return json.RawMessage(`{"messages":[{"role":"user","content":"hello"}]}`), nil
		case "review":
			if p.Arguments["what"] == "" {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "what is missing")
			}
			text, err := json.Marshal(fmt.Sprintf("Review %s %s.\u202e", p.Arguments["what"], p.Arguments["tone"]))
			return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":` +
				string(text) + `}},` +
				`{"role":"assistant","content":{"type":"text","text":"Show it."}},` +
				`{"role":"user","content":{"type":"resource","resource":{"uri":"test://notes",` +
				`"mimeType":"text/plain","text":"the change"}}}]}`), err
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no prompt %s", p.Name)
	case "resources/list":
		list := `{"resources":[{"uri":"test://notes","name":"notes","description":"Some notes",` +
			`"mimeType":"text/plain"},` +
			`{"uri":"test://pixel","name":"pixel","mimeType":"image/png"},{"uri":"test://raw","name":"raw"}`
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.mutated {
			list += `,{"uri":"test://added","name":"added"}`
		}
		return json.RawMessage(list + "]}"), nil
	case "resources/templates/list":
		return json.RawMessage(`{"resourceTemplates":[{"uriTemplate":"test://day/{date}","name":"day"}]}`), nil
	case "resources/read":
		one := map[string]string{"uri": p.URI}
		switch p.URI {
		case "test://notes":
			one["mimeType"], one["text"] = "text/plain", "the notes\x1b[31m say 42\n"
		case "test://pixel":
			one["mimeType"], one["blob"] = "image/png", base64.StdEncoding.EncodeToString(pixel)
		case "test://raw":
			one["blob"] = "AAEC"
		default:
			return nil, jsonrpc.Errorf(-32002, "resource not found: %s", p.URI)
		}
		return json.Marshal(map[string]any{"contents": []any{one}})
	}
	return nil, nil
}
