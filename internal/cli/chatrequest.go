package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/mcp/elicit"
)

// requestsOf describes the requests of a server for the chat program, in the order of their keys.
func requestsOf(server string, raw json.RawMessage) (list []tui.Request) {
	requests, err := elicit.ParseRequests(raw)
	if err != nil {
		return []tui.Request{{Broken: true, Warn: "the request cannot be read: " + safeLine(err.Error())}}
	}
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		switch q := requests[key]; q.Method {
		case elicit.Method:
			list = append(list, elicited(server, key, q.Params))
		case agent.MethodSample:
			list = append(list, sampled(q.Params))
		}
	}
	if len(list) == 0 { // such as roots, which need only consent
		name, _ := judged(wanted(raw), 200)
		list = append(list, tui.Request{Fields: [][2]string{{"wants", name}}, Decides: true})
	}
	return list
}

// elicited describes a form, or a page that the person is to open.
func elicited(server, key string, params json.RawMessage) tui.Request {
	form, err := elicit.Parse(params)
	if err != nil {
		return tui.Request{Broken: true, Warn: safeLine(err.Error())}
	}
	r := tui.Request{Key: key, Form: true}
	r.Text, _ = serverLines(form.Message)
	if form.Secret {
		name, _ := judged(server, 100)
		r.Warn = "server " + name + " asks for a secret: it gets what you type, and the run's journal keeps it"
	}
	if form.Mode == elicit.ModeURL {
		r.Head, r.Form, r.Yes, r.Copy = "the server wants you to visit a page", false, "I opened it", form.URL
		r.Fields = [][2]string{{"page", spelled(form.URL)}, {"leads to", spelled(form.Host)}}
		r.Warn = "open it yourself, if you know this site: tenon opens nothing"
		return r
	}
	var names []string
	for _, f := range form.Fields {
		r.Inputs = append(r.Inputs, fieldInput(f))
		name, _ := judged(f.Name, 60)
		names = append(names, strings.Trim(name, `"`))
	}
	if len(names) > 0 {
		r.Fields = [][2]string{{"asks for", strings.Join(names, ", ")}}
	}
	return r
}

// fieldInput makes a field of the program's form from a field of a server's form.
func fieldInput(f elicit.Field) tui.Input {
	in := tui.Input{Name: f.Name, Title: f.Title, Type: f.Type, Kind: kindOf(f), Help: oneLine(f.Description, 200),
		Required: f.Required, Value: f.Default}
	values := map[string]string{} // of the labels
	if f.Type == "string" {
		for _, o := range f.Options {
			label := oneLine(o.Label(), 200)
			if _, twice := values[label]; twice {
				label = oneLine(o.Value, 200)
			}
			in.Choices, values[label] = append(in.Choices, label), o.Value
		}
	}
	in.Text = defaultText(f, values)
	in.Check = func(text string) (json.RawMessage, error) {
		if value, ok := values[text]; ok {
			return tenon.EventData(value), nil
		}
		if f.Type != "string" {
			text = strings.TrimSpace(text)
		}
		return f.Parse(text)
	}
	return in
}

// defaultText returns the default of a field as a person edits it, or "" if the program's own form of it will do.
func defaultText(f elicit.Field, values map[string]string) string {
	var text string
	var list []string
	switch {
	case f.Type == "array" && json.Unmarshal(f.Default, &list) == nil:
		return strings.Join(list, ", ")
	case f.Type == "string" && json.Unmarshal(f.Default, &text) == nil:
		for label, value := range values {
			if value == text {
				return label
			}
		}
	}
	return ""
}

// kindOf describes the values of a field.
func kindOf(f elicit.Field) string {
	var parts []string
	switch f.Type {
	case "boolean":
		parts = append(parts, "true or false; Left and Right choose")
	case "integer", "number":
		parts = append(parts, map[string]string{"integer": "a whole number", "number": "a number"}[f.Type])
		parts = append(parts, limits(f.Minimum, f.Maximum, "%v")...)
	case "array":
		var labels []string
		for i, o := range f.Options {
			labels = append(labels, fmt.Sprintf("%d %s", i+1, oneLine(o.Label(), 60)))
		}
		parts = append(parts, "some of "+strings.Join(labels, ", ")+"; with commas")
		parts = append(parts, limits(f.MinItems, f.MaxItems, "%v of them")...)
	default:
		kind := map[string]string{"email": "an email address", "uri": "a URI", "date": "a date such as 2026-11-21",
			"date-time": "a time such as 2026-11-21T08:30:00Z"}[f.Format]
		kind = cmp.Or(kind, "a text")
		parts = append(append(parts, kind), limits(f.MinLength, f.MaxLength, "%v characters")...)
	}
	if !f.Required && len(f.Default) == 0 {
		parts = append(parts, "may be empty")
	}
	return strings.Join(parts, ", ")
}

// limits describes a lower and an upper limit.
func limits[T int | float64](least, most *T, unit string) (parts []string) {
	if least != nil {
		parts = append(parts, "at least "+fmt.Sprintf(unit, *least))
	}
	if most != nil {
		parts = append(parts, "at most "+fmt.Sprintf(unit, *most))
	}
	return parts
}

// oneLine returns the beginning of a server's text, on one line.
func oneLine(text string, most int) string {
	return shorten(strings.Join(strings.Fields(text), " "), most)
}

// sampled describes the request that the model would receive on behalf of a server.
func sampled(params json.RawMessage) tui.Request {
	r := tui.Request{Head: "the server wants an answer of the model", Yes: "the model may answer", Decides: true}
	p := readSampling(params)
	say := func(role, text string) {
		lines, _ := serverLines(text)
		r.Text = append(append(r.Text, role+":"), lines...)
	}
	if p.SystemPrompt != "" {
		say("system", p.SystemPrompt)
	}
	for _, m := range p.Messages {
		role, _ := judged(m.Role, 20)
		say(strings.Trim(role, `"`), m.text())
	}
	if p.MaxTokens != "" {
		r.Fields = append(r.Fields, [2]string{"answer", safeLine(string(p.MaxTokens)) + " tokens at most"})
	}
	return r
}

// sampling is the request of a server for an answer of the model, as far as a person sees it.
type sampling struct {
	SystemPrompt string            `json:"systemPrompt"`
	Messages     []samplingMessage `json:"messages"`
	MaxTokens    json.Number       `json:"maxTokens"`
}

type samplingMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// readSampling reads the params of a request. The executor has decoded them already.
func readSampling(params json.RawMessage) (p sampling) {
	_ = exactjson.DecodeOpen(params, &p)
	return p
}

// text returns the text of a message, or its JSON if it is something else.
func (m samplingMessage) text() string {
	var c tenon.Content
	if json.Unmarshal(m.Content, &c) == nil && c.Type == tenon.ContentText {
		return c.Text
	}
	return string(m.Content)
}

// contentOf encodes the contents of accepted forms for a ruling: the content of one form, or an object of several by
// their keys.
func contentOf(contents map[string]json.RawMessage) (json.RawMessage, error) {
	switch len(contents) {
	case 0:
		return nil, nil
	case 1:
		for _, content := range contents {
			return content, nil
		}
	}
	return encodeJSON(contents)
}
