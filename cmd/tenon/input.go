package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// form is what a server wants to know (MCP, elicitation/create in form mode).
type form struct {
	Message string
	Fields  []formField
}

// formField is one property of a form's schema.
type formField struct {
	Name, Title, Description, Type string
	Enum                           []string
	Default                        json.RawMessage
	Required                       bool
}

// readForm reads the first form among a server's requests.
func readForm(requests json.RawMessage) (form, error) {
	var asked map[string]struct {
		Method string `json:"method"`
		Params struct {
			Message string `json:"message"`
			Schema  struct {
				Properties json.RawMessage `json:"properties"`
				Required   []string        `json:"required"`
			} `json:"requestedSchema"`
		} `json:"params"`
	}
	if err := json.Unmarshal(requests, &asked); err != nil {
		return form{}, tenon.Errorf(tenon.CodeProtocol, "what the server asks for cannot be read: %w", err)
	}
	for _, q := range asked {
		if q.Method != "elicitation/create" {
			continue
		}
		f := form{Message: q.Params.Message}
		var err error
		f.Fields, err = readFields(q.Params.Schema.Properties, q.Params.Schema.Required)
		return f, err
	}
	return form{}, tenon.Errorf(tenon.CodeProtocol, "the server asks for something else than a form")
}

// readFields keeps the order in which the server lists the properties.
func readFields(properties json.RawMessage, required []string) ([]formField, error) {
	var list []formField
	dec := json.NewDecoder(bytes.NewReader(properties))
	if _, err := dec.Token(); err != nil {
		return nil, nil // a form without fields
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeProtocol, "the server's form cannot be read: %w", err)
		}
		f := formField{}
		if err := dec.Decode(&f); err != nil {
			return nil, tenon.Errorf(tenon.CodeProtocol, "the server's form cannot be read: %w", err)
		}
		f.Name, _ = name.(string)
		f.Required = slices.Contains(required, f.Name)
		list = append(list, f)
	}
	return list, nil
}

// askInput has the person fill in what a server asks for, or decline.
func (a *app) askInput(ctx context.Context, asked agent.Asking) (agent.Ruling, error) {
	r := agent.Ruling{By: string(tenon.PrincipalLocal), Verdict: tenon.Deny}
	f, err := readForm(asked.Requests)
	if err != nil {
		return r, err
	}
	a.note("")
	_, _ = a.err.Write([]byte(a.errStyle(yellow, "the server asks for input") + "\n"))
	a.note("  server     %s", safeLine(asked.Server))
	a.note("  tool       %s", safeLine(asked.Remote))
	a.note("  question   %s", safeLine(f.Message))
	answer, err := a.ask(ctx, "[a]nswer / [d]ecline: ")
	if err != nil {
		return r, errors.Join(errUndecided, err)
	}
	if !strings.HasPrefix(strings.ToLower(answer), "a") {
		return r, nil
	}
	content := map[string]json.RawMessage{}
	for _, field := range f.Fields {
		value, err := a.askField(ctx, field)
		if err != nil {
			return r, errors.Join(errUndecided, err)
		}
		if value != nil {
			content[field.Name] = value
		}
	}
	r.Verdict = tenon.Allow
	r.Arguments, err = encodeJSON(content)
	return r, err
}

// askField asks for one value until it fits; an empty answer takes the default,
// or leaves the field out.
func (a *app) askField(ctx context.Context, f formField) (json.RawMessage, error) {
	label := f.Title
	if label == "" {
		label = f.Name
	}
	if f.Description != "" {
		label += " (" + f.Description + ")"
	}
	if len(f.Enum) > 0 {
		label += " [" + strings.Join(f.Enum, ", ") + "]"
	}
	if len(f.Default) > 0 {
		label += " [default " + string(f.Default) + "]"
	}
	for {
		answer, err := a.ask(ctx, "  "+safeLine(label)+": ")
		if err != nil {
			return nil, err
		}
		switch {
		case answer == "" && len(f.Default) > 0:
			return f.Default, nil
		case answer == "" && !f.Required:
			return nil, nil
		case answer == "":
			a.note("  this one is required")
			continue
		}
		if value, ok := f.value(answer); ok {
			return value, nil
		}
		a.note("  that is no %s", f.Type)
	}
}

// value turns what was typed into JSON of the field's type.
func (f formField) value(answer string) (json.RawMessage, bool) {
	switch f.Type {
	case "boolean":
		switch strings.ToLower(answer) {
		case "y", "yes", "true":
			return json.RawMessage("true"), true
		case "n", "no", "false":
			return json.RawMessage("false"), true
		}
		return nil, false
	case "integer", "number":
		var n json.Number
		if json.Unmarshal([]byte(answer), &n) != nil || f.Type == "integer" && strings.ContainsAny(answer, ".eE") {
			return nil, false
		}
		return json.RawMessage(n), true
	}
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, answer) {
		return nil, false
	}
	b, err := encodeJSON(answer)
	return b, err == nil
}
