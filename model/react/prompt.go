package react

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/tenonhq/tenon"
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

// Config is how prompts are written.
type Config struct {
	// Template is a text/template. Its variables are question, context, tools (name,
	// description, arguments: name, type, description, required), tool_list (the
	// same as text), tool_names (with commas between them), tool_choice (auto, any,
	// or the name of the tool that must be called) and history (thought, action,
	// arguments, observation; or message: what the user said in between). Its
	// functions, beside those of text/template: json, line (a text on one line),
	// indent (all lines but the first moved in). "": the built-in default.
	Template string
	// Context is what stands in the prompt as the variable context.
	Context string
}

// Prompt writes prompts. It is safe for concurrent use.
type Prompt struct {
	template *template.Template
	context  string
	tools    toolCache
}

var funcs = template.FuncMap{
	"json": func(v any) (string, error) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		err := e.Encode(v)
		return strings.TrimSuffix(b.String(), "\n"), err
	},
	"line":   oneLine,
	"indent": indent,
}

// New reads a template. It is tried out, so that a wrong variable shows here and
// not in a run. The error has code config.
func New(c Config) (*Prompt, error) {
	if c.Template == "" {
		c.Template, _ = Builtin(PromptDefault)
	}
	t, err := template.New("prompt").Option("missingkey=error").Funcs(funcs).Parse(c.Template)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "a react prompt cannot be read: %w", err)
	}
	p := &Prompt{template: t, context: strings.TrimSpace(c.Context)}
	tool := tenon.Tool{Name: "name", Description: "description", Input: []byte(`{"properties":{"a":{"type":"string"}}}`)}
	text, err := p.write(describe([]tenon.Tool{tool}), "the question", "auto", []map[string]any{step("t", "name", "{}", "o", ""), step("", "", "", "", "m")})
	switch {
	case err != nil:
		return nil, err
	case !strings.Contains(text, "the question"):
		return nil, tenon.Errorf(tenon.CodeConfig, "a react prompt must have the question: {{.question}}")
	case !strings.Contains(text, "name"):
		return nil, tenon.Errorf(tenon.CodeConfig, "a react prompt must have the tools: {{.tool_list}}, or what {{range .tools}} makes of them")
	}
	return p, nil
}

// maxPrompt bounds what a template may write, in bytes.
const maxPrompt = 64 << 20

func (p *Prompt) write(tools *toolset, question, choice string, history []map[string]any) (string, error) {
	b := bounded{}
	b.Grow(len(tools.list) + len(question) + len(p.context) + 4096)
	err := p.template.Execute(&b, map[string]any{"question": question, "context": p.context, "tools": tools.values,
		"tool_list": tools.list, "tool_names": tools.names, "tool_choice": choice, "history": history})
	if err != nil {
		return "", tenon.Errorf(tenon.CodeConfig, "a react prompt cannot be written: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

// bounded is a text of a bounded size.
type bounded struct{ strings.Builder }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxPrompt {
		return 0, fmt.Errorf("it is larger than %d bytes", maxPrompt)
	}
	return b.Builder.Write(p)
}

// Request writes a request for a model that cannot call tools: one that has tools
// becomes a prompt, all others stay what they are, but for calls and results in
// the history. The error has code config.
func (p *Prompt) Request(req *tenon.Request) (*tenon.Request, error) {
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
	if choice == "" || choice != "auto" && slices.ContainsFunc(c.steps, func(s map[string]any) bool { return s["action"] != "" }) {
		choice = "auto" // it has been called
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
