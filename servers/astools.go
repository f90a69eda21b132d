package servers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// The names of the tools that prompts_as_tools and resources_as_tools add. If such a key is set, the server's own
// tools of these names are left out.
const (
	promptPrefix  = "prompt:"
	listResources = "resources:list"
	readResource  = "resources:read"
)

// isOffer reports whether a tool's name belongs to a tool made of a prompt or of the resources.
func (c *Config) isOffer(name string) bool {
	return c.PromptsAsTools && strings.HasPrefix(name, promptPrefix) || c.ResourcesAsTools &&
		(name == listResources || name == readResource)
}

// definitions lists the server's tools, with the tools made of prompts and resources. If listing the prompts fails, the
// tools remain.
func (s *Server) definitions(ctx context.Context, c *link) ([]tenon.Tool, error) {
	tools, err := c.Tools(ctx)
	if err != nil || !s.cfg.PromptsAsTools && !s.cfg.ResourcesAsTools {
		return tools, err
	}
	out := make([]tenon.Tool, 0, len(tools)+2)
	for _, t := range tools {
		if s.cfg.isOffer(t.Remote) {
			s.log.Warn("left out a tool: a prompt or resource that is offered as a tool has the same name", "tool",
				t.Remote)
			continue
		}
		out = append(out, t)
	}
	add := func(d offerTool) {
		raw, err := json.Marshal(d)
		var t tenon.Tool
		if err == nil {
			t, err = mcp.ParseTool(raw)
		}
		if err != nil {
			s.log.Warn("not offered as a tool", "name", d.Name, "error", err)
			return
		}
		out = append(out, t)
	}
	if s.cfg.PromptsAsTools {
		prompts, err := c.Prompts(ctx)
		if err != nil {
			s.log.Warn("the prompts of the server cannot be offered as tools", "error", err)
		}
		for _, p := range prompts {
			add(promptTool(p))
		}
	}
	if s.cfg.ResourcesAsTools {
		add(offerTool{Name: listResources, Description: "Lists what can be read of " + s.title() +
			": URIs, and templates of URIs, one a line.", Input: inputSchema{}, Hints: reads})
		add(offerTool{Name: readResource, Description: "Reads a resource of " + s.title() + ".",
			Input: inputSchema{{name: "uri", description: "URI of the resource", required: true}}, Hints: reads})
	}
	return out, nil
}

func (s *Server) title() string {
	return cmp.Or(s.cfg.Title, s.name)
}

// offerTool is the definition of a tool that is made of a prompt or of the resources.
type offerTool struct {
	Name        string      `json:"name"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description"`
	Input       inputSchema `json:"inputSchema"`
	Hints       hints       `json:"annotations"`
}

type hints struct {
	ReadOnly bool `json:"readOnlyHint"`
}

// reads are the annotations of these tools: by the protocol, prompts/get and resources/read change nothing.
var reads = hints{ReadOnly: true}

// inputSchema is a list of string arguments that is written as a JSON Schema.
type inputSchema []textArgument

type textArgument struct {
	name, description string
	required          bool
}

// MarshalJSON keeps the order of the arguments. An argument that is listed twice is written once.
func (list inputSchema) MarshalJSON() ([]byte, error) {
	var names, required []string
	props := []byte{'{'}
	seen := map[string]bool{}
	for _, a := range list {
		if seen[a.name] {
			continue
		}
		seen[a.name] = true
		key, err := json.Marshal(a.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(struct {
			Type        string `json:"type"`
			Description string `json:"description,omitempty"`
		}{"string", a.description})
		if err != nil {
			return nil, err
		}
		if names = append(names, a.name); len(names) > 1 {
			props = append(props, ',')
		}
		props = append(append(append(props, key...), ':'), value...)
		if a.required {
			required = append(required, a.name)
		}
	}
	return json.Marshal(struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required,omitempty"`
		Additional bool            `json:"additionalProperties"`
	}{"object", append(props, '}'), required, false})
}

func promptTool(p mcp.Prompt) offerTool {
	d := offerTool{Name: promptPrefix + p.Name, Title: p.Title,
		Description: "Gives the text of the prompt '" + p.Name + "', filled in.", Hints: reads}
	if p.Description != "" {
		d.Description += " " + p.Description
	}
	for _, a := range p.Arguments {
		about := cmp.Or(a.Description, a.Title)
		d.Input = append(d.Input, textArgument{a.Name, about, a.Required})
	}
	return d
}

// offer calls a tool that is made of a prompt or of the resources.
func (s *Server) offer(ctx context.Context, c *link, call tenon.Call) (*tenon.Result, error) {
	args := map[string]string{}
	var given map[string]json.RawMessage
	if len(call.Arguments) > 0 {
		if err := json.Unmarshal(call.Arguments, &given); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments are no JSON object: %w", err)
		}
	}
	for k, v := range given {
		text, ok := rawjson.ParseString(v)
		if !ok {
			text = string(v) // such as a number, if nothing has checked the arguments
		}
		args[k] = text
	}
	switch call.Tool {
	case listResources:
		list, err := c.Resources(ctx)
		if err != nil {
			return nil, err
		}
		return &tenon.Result{Content: []tenon.Content{tenon.Text(resourceLines(list))}}, nil
	case readResource:
		contents, err := c.Read(ctx, args["uri"])
		if err != nil {
			return nil, err
		}
		return &tenon.Result{Content: contents}, nil
	}
	raw, err := c.Prompt(ctx, strings.TrimPrefix(call.Tool, promptPrefix), args)
	if err != nil {
		return nil, err
	}
	return promptResult(raw)
}

// promptResult converts the result of prompts/get to a tool's result: the contents of its messages in order. If the
// messages have several roles, each text names its role.
func promptResult(raw json.RawMessage) (*tenon.Result, error) {
	var in struct {
		Messages []struct {
			Role    string
			Content tenon.Content
		}
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "the result of prompts/get cannot be read: %w", err)
	}
	several := false
	for _, m := range in.Messages {
		several = several || m.Role != in.Messages[0].Role
	}
	out := &tenon.Result{}
	for _, m := range in.Messages {
		if m.Content.Type == tenon.ContentText && several {
			m.Content = tenon.Text(m.Role + ": " + m.Content.Text)
		}
		out.Content = append(out.Content, m.Content)
	}
	return out, nil
}

func resourceLines(list []mcp.Resource) string {
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%s%s  %s", r.URI, r.Template, r.Name)
		if r.MimeType != "" {
			fmt.Fprintf(&b, " (%s)", r.MimeType)
		}
		if r.Description != "" {
			fmt.Fprintf(&b, ": %s", strings.Join(strings.Fields(r.Description), " "))
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "There are no resources."
	}
	return strings.TrimSuffix(b.String(), "\n")
}
