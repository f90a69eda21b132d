package testserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/tenonhq/tenon/jsonrpc"
)

// prompted answers what is asked about prompts, and with --prompts about resources; nil
// leaves the answer to others.
func (s *server) prompted(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch name, _ := jsonrpc.String(jsonrpc.Field(params, "name")); {
	case method == "prompts/list":
		return s.promptList(), nil
	case method == "prompts/get" && name == "greet_user":
		whom, _ := jsonrpc.String(jsonrpc.Field(jsonrpc.Field(params, "arguments"), "name"))
		text, err := json.Marshal("Please greet " + whom + ".")
		return json.RawMessage(`{"description":"Greets a person","messages":[{"role":"user","content":{"type":"text","text":` + string(text) + `}}]}`), err
	case s.o.Prompts:
		return s.promptsOffer(method, params)
	case method == "prompts/get":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no prompt %s", name)
	}
	return nil, nil
}

func (s *server) promptList() json.RawMessage {
	list := `{"prompts":[{"name":"greet_user","description":"Greets a person","arguments":[{"name":"name","description":"whom","required":true}]}`
	if s.o.Prompts {
		list += `,{"name":"review","title":"Review","description":"Reviews a change\u001b[31m","arguments":[{"name":"what","description":"what to look at","required":true},{"name":"tone"}]},` +
			`{"name":"hello","description":"Says hello"}`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mutated {
		list += `,{"name":"added_prompt","description":"Came later"}`
	}
	return json.RawMessage(list + "]}")
}

// promptsOffer answers what is asked about the prompts and resources of --prompts.
func (s *server) promptsOffer(method string, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Name, URI string
		Arguments map[string]string
	}
	_ = json.Unmarshal(params, &p) // what is missing is not found below
	switch method {
	case "prompts/get":
		switch p.Name {
		case "hello":
			return json.RawMessage(`{"description":"Says hello","messages":[{"role":"user","content":{"type":"text","text":"Say hello."}}]}`), nil
		case "review":
			if p.Arguments["what"] == "" {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "what is missing")
			}
			text, err := json.Marshal(fmt.Sprintf("Review %s %s.\u202e", p.Arguments["what"], p.Arguments["tone"]))
			return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":` + string(text) + `}},` +
				`{"role":"assistant","content":{"type":"text","text":"Show it."}},` +
				`{"role":"user","content":{"type":"resource","resource":{"uri":"test://notes","mimeType":"text/plain","text":"the change"}}}]}`), err
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no prompt %s", p.Name)
	case "resources/list":
		list := `{"resources":[{"uri":"test://notes","name":"notes","description":"Some notes","mimeType":"text/plain"},` +
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
