package cli

import (
	"cmp"
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
	"github.com/tenonhq/tenon/mcp/elicit"
)

// wanted describes the requests of a server in one line that is safe to show. Texts that are too long are cut and have
// their size and digest.
func wanted(requests json.RawMessage) string {
	all, err := elicit.ParseRequests(requests)
	if err != nil {
		return "something that cannot be read"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		form, err := elicit.Parse(all[key].Params)
		part, whole := judged(form.Message, 200)
		if !whole {
			part += " … (" + sized([]byte(form.Message)) + ")"
		}
		switch {
		case all[key].Method == agent.MethodSample:
			part = "an answer of the model"
		case err != nil:
			part, _ = judged(all[key].Method, 60)
		case form.Mode == elicit.ModeURL:
			part += " at " + spelled(form.URL)
		default:
			var names []string
			for _, f := range form.Fields {
				name := f.Name
				if !isWord(name) {
					name, _ = judged(name, 60)
				}
				if f.Secret {
					name += " (" + f.Type + ", a secret)"
				} else {
					name += " (" + f.Type + ")"
				}
				names = append(names, name)
			}
			part += ": " + strings.Join(names, ", ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// isWord reports whether a name needs no quotes.
func isWord(name string) bool {
	return name != "" && len(name) <= 60 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}

// askInput lets the person answer the requests of a server, or decline.
func (a *app) askInput(ctx context.Context, asked agent.Asking) (agent.Ruling, error) {
	r := agent.Ruling{By: string(tenon.PrincipalLocal), Verdict: tenon.Deny}
	requests, err := elicit.ParseRequests(asked.Requests)
	if err != nil {
		return r, err
	}
	contents := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		q := requests[key]
		yes := true
		switch q.Method {
		case "elicitation/create":
			form, err := elicit.Parse(q.Params)
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
	r.Arguments, err = contentOf(contents)
	return r, err
}

// askForm lets the person fill in a form or visit a URL. content is nil for a URL.
func (a *app) askForm(ctx context.Context, asked agent.Asking, f elicit.Form) (content json.RawMessage, yes bool,
	err error) {
	a.note("")
	head := "the server asks for input"
	if f.Mode == elicit.ModeURL {
		head = "the server wants you to visit a page"
	}
	a.showFrom(head, asked)
	a.say(f.Message)
	if f.Secret {
		a.saySecret(asked.Server)
	}
	if f.Mode == elicit.ModeURL {
		a.note("  page       %s", spelled(f.URL))
		a.note("  leads to   %s", spelled(f.Host))
		a.note("  Open it yourself, if you know this site: tenon opens nothing.")
		yes, err = a.yesOrNo(ctx, "did you open it, and may the server continue? [y]es / [n]o: ")
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
		value, err := a.askField(ctx, asked.Server, field)
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

// showFrom shows the server and the tool of a request.
func (a *app) showFrom(head string, asked agent.Asking) {
	_, _ = a.err.Write([]byte(a.errStyle(yellow, head) + "\n"))
	a.note("  server     %s", safeLine(asked.Server))
	a.note("  tool       %s", safeLine(asked.Remote))
}

// say shows a text from a server.
func (a *app) say(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	lines, _ := a.said(text)
	a.note("%s", strings.Join(lines, "\n"))
}

// showSampling shows the request that the model would receive on behalf of a server.
func (a *app) showSampling(asked agent.Asking, params json.RawMessage) {
	p := readSampling(params)
	a.note("")
	a.showFrom("the server wants an answer of the model", asked)
	if p.SystemPrompt != "" {
		a.note("  system")
		a.say(p.SystemPrompt)
	}
	for _, m := range p.Messages {
		role, _ := judged(m.Role, 20)
		a.note("  %s", strings.Trim(role, `"`))
		a.say(m.text())
	}
	if p.MaxTokens != "" {
		a.note("  %-10s %s tokens at most", "answer", safeLine(string(p.MaxTokens)))
	}
}

// spelled escapes all characters outside ASCII, because they may look like others.
func spelled(s string) string {
	quoted := strconv.QuoteToASCII(s)
	return quoted[1 : len(quoted)-1]
}

// yesOrNo asks until there is a yes or a no.
func (a *app) yesOrNo(ctx context.Context, question string) (bool, error) {
	defer a.logs.hold()()
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
		a.note("%s", answerYesOrNo)
	}
}

// answerYesOrNo is the hint after an answer that is neither.
const answerYesOrNo = "answer y or n"

// showField shows the server's description of a field and returns the prompt for its value.
func (a *app) showField(server string, f elicit.Field) (question string) {
	text := cmp.Or(f.Title, f.Name)
	if f.Description != "" {
		text += " (" + f.Description + ")"
	}
	for i, o := range f.Options {
		text += fmt.Sprintf("\n  %d  %s", i+1, strings.ReplaceAll(o.Label(), "\n", " "))
	}
	if len(f.Default) > 0 {
		text += "\n  default: " + string(f.Default)
	}
	a.note("")
	a.say(text)
	if f.Secret {
		a.saySecret(server)
		a.note("    A server should not ask for one here. It is shown, and kept in the run's journal.")
	}
	kind := map[string]string{"integer": "a whole number", "number": "a number", "boolean": "y or n",
		"array": "some of them, with commas between"}[f.Type]
	switch {
	case kind == "" && len(f.Options) > 0:
		kind = "one of them"
	case kind == "":
		kind = "a text"
	}
	switch {
	case len(f.Default) > 0:
		kind += "; empty for the default"
	case !f.Required:
		kind += "; empty to omit it"
	}
	return "  answer, " + kind + ": "
}

// askField asks for the value of a field until it is valid. An empty answer selects the default, or omits a field that
// is not required.
func (a *app) askField(ctx context.Context, server string, f elicit.Field) (json.RawMessage, error) {
	question := a.showField(server, f)
	for {
		answer, err := a.ask(ctx, question)
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
		value, err := f.Parse(answer)
		if err == nil {
			return value, nil
		}
		a.note("  it %s", safeLine(err.Error()))
	}
}
