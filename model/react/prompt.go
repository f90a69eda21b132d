package react

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/template"
)

// The names of the built-in templates.
const (
	PromptDefault    = "default"
	PromptTrustGraph = "trustgraph"
)

//go:embed *.tmpl
var builtin embed.FS

// Builtin returns the text of a built-in template.
func Builtin(name string) (string, bool) {
	b, err := builtin.ReadFile(name + ".tmpl")
	return string(b), err == nil && !strings.Contains(name, "/")
}

// Config configures the prompts.
type Config struct {
	// Template has the syntax of text/template. If empty, the built-in default is used. Its variables are:
	//
	//   - question and context: texts;
	//   - tools: the tools (name, description, arguments: name, type, description, required);
	//   - tool_list: the tools as text;
	//   - tool_names: their names, separated by commas;
	//   - tool_choice: auto, any, or the name of the tool that must be called;
	//   - history: the steps so far (thought, action, arguments, observation; or message, the text
	//     of a user message between steps).
	//
	// It has the functions of text/template except call and js, and json, line (puts a text on one line) and indent
	// (indents all lines but the first).
	Template string
	// Context is the value of the variable context.
	Context string
}

// Prompt renders prompts. It is safe for concurrent use.
type Prompt struct {
	template *template.Template
	context  string
	tools    toolCache
}

var funcs = map[string]template.Func{
	"json": func(args ...any) (any, error) {
		if len(args) != 1 {
			return nil, errors.New("want one value")
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		err := e.Encode(args[0])
		return strings.TrimSuffix(b.String(), "\n"), err
	},
	"line":   ofText(oneLine),
	"indent": ofText(indent),
}

func ofText(f func(string) string) template.Func {
	return func(args ...any) (any, error) {
		if len(args) == 1 {
			if s, ok := args[0].(string); ok {
				return f(s), nil
			}
		}
		return nil, errors.New("want one text")
	}
}

// New parses a template and renders it once, so that errors are detected before a run. Errors have
// code config.
func New(c Config) (*Prompt, error) {
	if c.Template == "" {
		c.Template, _ = Builtin(PromptDefault)
	}
	t, err := template.Parse("prompt", c.Template, funcs)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "a react prompt cannot be parsed: %w", err)
	}
	p := &Prompt{template: t, context: strings.TrimSpace(c.Context)}
	input := []byte(`{"properties":{"a":{"type":"string"}}}`)
	tool := tenon.Tool{Name: "name", Description: "description", Input: input}
	history := []map[string]any{step("t", "name", "{}", "o", ""), step("", "", "", "", "m")}
	text, err := p.write(describe([]tenon.Tool{tool}), "the question", "auto", history)
	switch {
	case err != nil:
		return nil, err
	case !strings.Contains(text, "the question"):
		return nil, tenon.Errorf(tenon.CodeConfig, "a react prompt must contain the question: {{.question}}")
	case !strings.Contains(text, "name"):
		return nil, tenon.Errorf(tenon.CodeConfig, "a react prompt must contain the tools: {{.tool_list}}, "+
			"or a loop over them: {{range .tools}}")
	}
	return p, nil
}

// maxPrompt bounds the size of a prompt in bytes.
const maxPrompt = 64 << 20

func (p *Prompt) write(tools *toolset, question, choice string, history []map[string]any) (string, error) {
	b := bounded{}
	b.Grow(len(tools.list) + len(question) + len(p.context) + 4096)
	err := p.template.Execute(&b, map[string]any{
		"question": question, "context": p.context, "tools": tools.values, "tool_list": tools.list,
		"tool_names": tools.names, "tool_choice": choice, "history": history,
	})
	if err != nil {
		return "", tenon.Errorf(tenon.CodeConfig, "a react prompt cannot be rendered: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

// bounded is a strings.Builder with a size limit.
type bounded struct{ strings.Builder }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxPrompt {
		return 0, fmt.Errorf("it is larger than %d bytes", maxPrompt)
	}
	return b.Builder.Write(p)
}

// Request converts a request for a model without tool support. If the request has tools, its
// messages become a prompt. Otherwise only calls and results in the messages become text. Errors
// have code config.
func (p *Prompt) Request(req *tenon.Request) (*tenon.Request, error) {
	req = offer(req)
	out := *req
	out.Tools, out.ToolChoice = nil, ""
	if len(req.Tools) == 0 || req.ToolChoice == "none" {
		out.Messages = plain(req.Messages)
		return &out, nil
	}
	c := split(req.Messages)
	var question []string
	var rest []tenon.Part
	for _, m := range c.question {
		question = append(question, m.Text())
		for _, part := range m.Parts {
			if part.Type != tenon.PartText {
				rest = append(rest, part) // such as images
			}
		}
	}
	choice := req.ToolChoice
	called := func(s map[string]any) bool { return s["action"] != "" }
	if choice == "" || choice != "auto" && slices.ContainsFunc(c.steps, called) {
		choice = "auto" // a required tool has been called
	}
	text, err := p.write(p.tools.get(req.Tools), strings.Join(question, "\n\n"), choice, c.steps)
	if err != nil {
		return nil, err
	}
	m := &tenon.Message{Role: tenon.RoleUser, Parts: append([]tenon.Part{{Type: tenon.PartText, Text: text}}, rest...)}
	if c.mark != nil {
		m.Parts = append(m.Parts, *c.mark)
	}
	out.Messages = append(c.before, m)
	return &out, nil
}
