package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// request is one of a server's requests for input.
type request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func readRequests(raw json.RawMessage) (map[string]request, error) {
	var all map[string]request
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, tenon.Errorf(tenon.CodeProtocol, "what the server asks for cannot be read: %w", err)
	}
	return all, nil
}

// wanted is what a server asks for, in one line that is safe to show.
func wanted(requests json.RawMessage) string {
	all, err := readRequests(requests)
	if err != nil {
		return "what cannot be read"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		form, err := host.ParseForm(all[key].Params)
		part := fmt.Sprintf("%q", form.Message)
		switch {
		case all[key].Method == agent.MethodSample:
			part = "an answer of the model"
		case err != nil:
			part = all[key].Method
		case form.Mode == host.ModeURL:
			part += " at " + spelled(form.URL)
		default:
			var names []string
			for _, f := range form.Fields {
				names = append(names, f.Name+" ("+f.Type+")")
			}
			part += ": " + strings.Join(names, ", ")
		}
		parts = append(parts, shorten(safeLine(part), 300))
	}
	return strings.Join(parts, "; ")
}

// askInput has the person answer what a server asks for, or decline.
func (a *app) askInput(ctx context.Context, asked agent.Asking) (agent.Ruling, error) {
	r := agent.Ruling{By: string(tenon.PrincipalLocal), Verdict: tenon.Deny}
	requests, err := readRequests(asked.Requests)
	if err != nil {
		return r, err
	}
	contents := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		q := requests[key]
		yes := true
		switch q.Method {
		case "elicitation/create":
			form, err := host.ParseForm(q.Params)
			if err != nil {
				return r, err
			}
			var content json.RawMessage
			if content, yes, err = a.askForm(ctx, asked, form); err != nil {
				return r, err
			}
			if content != nil {
				contents[key] = content
			}
		case agent.MethodSample:
			a.showSampling(asked, q.Params)
			if yes, err = a.yesOrNo(ctx, "may the model answer? [y]es / [n]o: "); err != nil {
				return r, err
			}
		}
		if !yes {
			return r, nil
		}
	}
	r.Verdict = tenon.Allow
	switch len(contents) {
	case 0:
	case 1:
		for _, r.Arguments = range contents {
		}
	default:
		r.Arguments, err = encodeJSON(contents)
	}
	return r, err
}

// askForm has the person fill in one form, or visit one URL. Content is nil for a
// URL.
func (a *app) askForm(ctx context.Context, asked agent.Asking, f host.Form) (content json.RawMessage, yes bool, err error) {
	a.note("")
	head := "the server asks for input"
	if f.Mode == host.ModeURL {
		head = "the server wants you to visit a page"
	}
	a.showFrom(head, asked, "question", f.Message)
	if f.Mode == host.ModeURL {
		a.note("  page       %s", spelled(f.URL))
		a.note("  leads to   %s", spelled(f.Host))
		a.note("  Open it yourself, if you know this site: tenon opens nothing.")
		yes, err = a.yesOrNo(ctx, "did you, and shall the server go on? [y]es / [n]o: ")
		return nil, yes, err
	}
	answer, err := a.ask(ctx, "[a]nswer / [d]ecline: ")
	if err != nil {
		return nil, false, errors.Join(errUndecided, err)
	}
	if !strings.HasPrefix(strings.ToLower(answer), "a") {
		return nil, false, nil
	}
	values := map[string]json.RawMessage{}
	for _, field := range f.Fields {
		value, err := a.askField(ctx, field)
		if err != nil {
			return nil, false, errors.Join(errUndecided, err)
		}
		if value != nil {
			values[field.Name] = value
		}
	}
	content, err = encodeJSON(values)
	return content, true, err
}

// showFrom says which tool of which server wants something.
func (a *app) showFrom(head string, asked agent.Asking, label, text string) {
	_, _ = a.err.Write([]byte(a.errStyle(yellow, head) + "\n"))
	a.note("  server     %s", safeLine(asked.Server))
	a.note("  tool       %s", safeLine(asked.Remote))
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i > 0 {
			label = ""
		}
		a.note("  %-10s %s", label, safeLine(line))
	}
}

// showSampling shows what the model would be asked on behalf of a server.
func (a *app) showSampling(asked agent.Asking, params json.RawMessage) {
	var p struct {
		SystemPrompt string
		Messages     []struct {
			Role    string
			Content json.RawMessage
		}
		MaxTokens json.Number
	}
	_ = json.Unmarshal(params, &p) // it was read before; what is not shown here the journal has
	a.note("")
	a.showFrom("the server wants an answer of the model", asked, "system", p.SystemPrompt)
	for _, m := range p.Messages {
		var c struct{ Type, Text string }
		text := string(m.Content)
		if json.Unmarshal(m.Content, &c) == nil && c.Type == "text" {
			text = c.Text
		}
		a.note("  %-10s %s", safeLine(m.Role), shorten(safeLine(text), 2000))
	}
	if p.MaxTokens != "" {
		a.note("  %-10s %s tokens at most", "answer", safeLine(string(p.MaxTokens)))
	}
}

// spelled writes what could look like something else as its code points.
func spelled(s string) string {
	quoted := strconv.QuoteToASCII(s)
	return quoted[1 : len(quoted)-1]
}

// yesOrNo asks until there is a yes or a no.
func (a *app) yesOrNo(ctx context.Context, question string) (bool, error) {
	for {
		answer, err := a.ask(ctx, question)
		if err != nil {
			return false, errors.Join(errUndecided, err)
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// askField asks for one value until it fits; an empty answer takes the default,
// or leaves the field out.
func (a *app) askField(ctx context.Context, f host.FormField) (json.RawMessage, error) {
	label := safeLine(f.Name)
	if f.Title != "" {
		label = safeLine(f.Title)
	}
	if f.Description != "" {
		label += " (" + safeLine(f.Description) + ")"
	}
	if f.Sensitive {
		a.note("  this looks like a secret: a server should not ask for one here, and what you type is shown and kept in the run's journal")
	}
	for i, o := range f.Options {
		a.note("    %d  %s", i+1, safeLine(o.Label()))
	}
	if f.Type == "array" {
		label += " [some, with commas between]"
	}
	if f.Type == "boolean" {
		label += " [y/n]"
	}
	if len(f.Default) > 0 {
		label += " [default " + safeLine(string(f.Default)) + "]"
	}
	for {
		answer, err := a.ask(ctx, "  "+label+": ")
		if err != nil {
			return nil, err
		}
		switch {
		case answer == "" && len(f.Default) > 0:
			return f.Default, nil
		case answer == "" && !f.Required:
			return nil, nil
		case answer == "" && f.Type != "string":
			a.note("  this one is required")
			continue
		}
		value, err := f.Read(answer)
		if err == nil {
			return value, nil
		}
		a.note("  it %s", safeLine(err.Error()))
	}
}
