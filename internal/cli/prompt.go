package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
)

// prompted is the JSON that run --print-prompt -o json prints.
type prompted struct {
	System     string           `json:"system"`
	Messages   []*tenon.Message `json:"messages"`
	Tools      []promptedTool   `json:"tools"`
	ToolChoice string           `json:"tool_choice"`
}

// promptedTool is a tool as a model sees it.
type promptedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input_schema"`
}

// printPrompt prints the first request that a question would send to the model.
func (a *app) printPrompt(ctx context.Context, q *asking, f *conversationFiles, data *dataFiles,
	text string) (err error) {
	h, question, done, err := a.ready(ctx, q, f, data, text)
	if err != nil {
		return err
	}
	defer done()
	defer closing(h, &err)
	req, problems, err := h.Models().Prompt(ctx, question)
	a.problems(problems)
	if err != nil {
		return err
	}
	p := prompted{System: req.System, Messages: req.Messages, Tools: []promptedTool{}, ToolChoice: req.ToolChoice}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, promptedTool{t.Name, t.Description, t.Input})
	}
	if a.isJSON() {
		return a.printJSON(p)
	}
	out := p.text()
	if a.outTTY {
		out = safeText(out)
	}
	return a.write([]byte(out))
}

// text formats the request for a person. If the request is a single message, it is written without headings.
func (p prompted) text() string {
	if p.System == "" && len(p.Messages) == 1 && len(p.Tools) == 0 {
		return p.Messages[0].Text() + "\n"
	}
	var b strings.Builder
	part := func(title, text string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# %s\n\n%s\n", title, text)
	}
	if p.System != "" {
		part("system", p.System)
	}
	for _, m := range p.Messages {
		text := m.Text()
		for _, c := range m.Calls() {
			text = strings.TrimSpace(text + "\n[calls " + c.Name + " " + string(c.Arguments) + "]")
		}
		for _, part := range m.Parts {
			if part.Result != nil {
				r := tenon.Result{Content: part.Result.Content}
				text = strings.TrimSpace(text + "\n[result of " + part.Result.Name + "]\n" + r.Text())
			}
		}
		part(string(m.Role), text)
	}
	if len(p.Tools) > 0 {
		lines := make([]string, len(p.Tools))
		for i, t := range p.Tools {
			b, _ := json.Marshal(t) // a schema is valid JSON
			lines[i] = string(b)
		}
		part("tools, in the form of the model's provider", strings.Join(lines, "\n"))
	}
	return b.String()
}
