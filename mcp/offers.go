package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Prompt is a text template that a server offers (prompts/list).
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Raw         json.RawMessage  `json:"-"` // as it came
}

// PromptArgument is a text that a prompt takes.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Resource is an entry of resources/list, which has a URI, or of resources/templates/list, which has a template of
// URIs (RFC 6570). Only one of URI and Template is set.
type Resource struct {
	URI         string          `json:"uri,omitempty"`
	Template    string          `json:"uriTemplate,omitempty"`
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MimeType    string          `json:"mimeType,omitempty"`
	Size        int64           `json:"size,omitempty"` // bytes; 0 if unknown
	Raw         json.RawMessage `json:"-"`              // as it came
}

// Prompts requests all pages of the server's prompts. It returns none if the server does not declare prompts. A
// prompt that cannot be read is left out with a warning. Prompts returns the errors of [Client.Tools].
func (c *Client) Prompts(ctx context.Context) ([]Prompt, error) {
	if !c.Info().Has("prompts") {
		return nil, nil
	}
	var prompts []Prompt
	var lost unread
	err := c.list(ctx, "prompts/list", "prompts", func(result []byte, items [][]byte) {
		for _, raw := range keep(result, items) {
			p := Prompt{Raw: raw}
			err := json.Unmarshal(raw, &p)
			if err == nil && p.Name == "" {
				err = errors.New("it has no name")
			}
			if err != nil {
				lost.add(raw, err)
				continue
			}
			prompts = append(prompts, p)
		}
	})
	c.warnUnread("prompts", lost)
	return prompts, err
}

// Resources requests all pages of the server's resources and then of its templates. It returns none if the server
// does not declare resources. It returns the errors of [Client.Tools].
func (c *Client) Resources(ctx context.Context) ([]Resource, error) {
	if !c.Info().Has("resources") {
		return nil, nil
	}
	var resources []Resource
	for _, list := range []struct{ method, key string }{{"resources/list", "resources"},
		{"resources/templates/list", "resourceTemplates"}} {
		var lost unread
		err := c.list(ctx, list.method, list.key, func(result []byte, items [][]byte) {
			for _, raw := range keep(result, items) {
				r := Resource{Raw: raw}
				err := json.Unmarshal(raw, &r)
				if list.key == "resources" {
					r.Template = "" // an unknown member there, which the specification allows
				} else {
					r.URI = ""
				}
				if err == nil && r.URI+r.Template == "" {
					err = errors.New("it has no uri, or as a template no uriTemplate")
				}
				if err != nil {
					lost.add(raw, err)
					continue
				}
				resources = append(resources, r)
			}
		})
		c.warnUnread("resources", lost)
		if err != nil {
			return nil, err
		}
	}
	return resources, nil
}

// unread are the definitions of a list that cannot be read: their number, and the first of them with the reason.
type unread struct {
	number int
	first  []byte
	reason error
}

func (u *unread) add(raw []byte, reason error) {
	if u.number == 0 {
		u.first, u.reason = raw, reason
	}
	u.number++
}

// warnUnread writes one line for a list, however many definitions are left out.
func (c *Client) warnUnread(what string, u unread) {
	if u.number > 0 {
		c.cfg.Logger.Warn("left out "+what+" that cannot be read", "number", u.number, "first", clip(u.first),
			"reason", u.reason.Error())
	}
}

// Prompt returns the raw result of prompts/get: a description and messages. The arguments are texts. It returns the
// errors of [Client.Call]. If the server requires input first, that is an error of code protocol.
func (c *Client) Prompt(ctx context.Context, name string, args map[string]string) (json.RawMessage, error) {
	params := text(nil, "name", name)
	if len(args) > 0 {
		b, err := json.Marshal(args)
		if err != nil {
			return nil, fmt.Errorf("the arguments of prompt %q: %w", name, err)
		}
		params = member(params, "arguments", b)
	}
	caller := CallerOf(ctx)
	return c.get(ctx, "prompts/get", c.withInput(params, caller), name, caller)
}

// withInput appends the answers of the client to what a modern server asked for.
func (c *Client) withInput(params []byte, caller *Caller) []byte {
	if caller == nil || caller.Input == nil || !c.isModern() {
		return params
	}
	if len(caller.Input.Responses) > 0 {
		params = member(params, "inputResponses", caller.Input.Responses)
	}
	if caller.Input.State != "" {
		params = text(params, "requestState", caller.Input.State)
	}
	return params
}

// InputError is the error of a request that a modern server answers only after it got input. Its client, which is
// behind the request (see [Caller]), can give the input and repeat the request.
type InputError struct {
	Method string
	Raw    json.RawMessage // the server's result, of type input_required
}

// Error implements error.
func (e *InputError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the error with its code, protocol, for callers that have no client.
func (e *InputError) Unwrap() error {
	return tenon.Errorf(tenon.CodeProtocol, "%s wants input first, which is given during tool calls only", e.Method)
}

// isInputRequired reports whether the result of a modern server asks for input.
func isInputRequired(raw []byte) bool {
	return rawjson.String(rawjson.Field(raw, "resultType")) == "input_required"
}

// Read returns the contents of a resource (resources/read), one for each part of it: type resource, with URI,
// MimeType, and Text or Data (base64). It returns the errors of [Client.Prompt]. If a [Caller] is behind the request
// and a modern server wants input first, the error is an [*InputError].
func (c *Client) Read(ctx context.Context, uri string) ([]tenon.Content, error) {
	caller := CallerOf(ctx)
	raw, err := c.get(ctx, "resources/read", c.withInput(text(nil, "uri", uri), caller), uri, caller)
	if err == nil && isInputRequired(raw) && c.isModern() {
		err = &InputError{"resources/read", raw}
	}
	if err != nil {
		return nil, err
	}
	readHint(ctx, raw)
	var contents []tenon.Content
	list := rawjson.Field(raw, "contents")
	if !rawjson.IsArray(list) {
		return nil, tenon.Errorf(tenon.CodeProtocol, "resources/read gives no array \"contents\"")
	}
	for v := range rawjson.Elements(list) {
		block := append(member(text([]byte{'{'}, "type", "resource"), "resource", v), '}')
		contents = append(contents, parseContent(block))
	}
	return contents, nil
}

// get makes a request without effects. The result must be complete, unless caller can answer the server's questions.
func (c *Client) get(ctx context.Context, method string, params []byte, about string, caller *Caller) (json.RawMessage,
	error) {
	var answer AskFunc
	if caller != nil {
		answer = caller.Ask
	}
	raw, err := c.ask(ctx, method, params, nil, about, nil, answer)
	if err != nil {
		return nil, c.explain(ctx, method, err, false)
	}
	kind, given := rawjson.ParseString(rawjson.Field(raw, "resultType"))
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return nil, tenon.Errorf(tenon.CodeProtocol, "the result of %s is no object: %s", method, clip(raw))
	case given && kind == "input_required" && c.isModern() && caller != nil:
		return raw, nil
	case given && kind == "input_required" && c.isModern():
		return nil, (&InputError{Method: method}).Unwrap()
	case given && kind != "complete":
		return nil, tenon.Errorf(tenon.CodeProtocol, "%s gave a result of the unsupported resultType %s", method,
			strconv.QuoteToASCII(kind))
	}
	return raw, nil
}
