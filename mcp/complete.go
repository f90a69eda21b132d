package mcp

import (
	"context"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// CompletionRequest asks for values of an argument of a prompt or of a variable of a resource template. Exactly one of
// Prompt and Template is set.
type CompletionRequest struct {
	Prompt   string            // name of the prompt
	Template string            // the template of URIs
	Argument string            // name of the argument or variable
	Value    string            // its text so far
	Others   map[string]string // the other arguments that are known (2025-06-18 and later)
}

// Completion contains the values of an argument that match its text so far (completion/complete).
type Completion struct {
	Values []string `json:"values"`             // at most 100
	Total  int      `json:"total,omitempty"`    // number of all values; 0 if unknown
	More   bool     `json:"has_more,omitempty"` // there are more than Values
}

// maxCompletions bounds the values of one completion (2025-11-25, completion, "Completion Results").
const maxCompletions = 100

// Complete asks the server for values of an argument. It returns none if the server declares no completions. It
// returns the errors of [Client.Prompt].
func (c *Client) Complete(ctx context.Context, r CompletionRequest) (Completion, error) {
	found := Completion{Values: []string{}}
	if !c.Info().Has("completions") {
		return found, nil
	}
	ref := append(text(text([]byte{'{'}, "type", "ref/prompt"), "name", r.Prompt), '}')
	about := r.Prompt
	if r.Template != "" {
		ref = append(text(text([]byte{'{'}, "type", "ref/resource"), "uri", r.Template), '}')
		about = r.Template
	}
	params := member(nil, "ref", ref)
	params = member(params, "argument", append(text(text([]byte{'{'}, "name", r.Argument), "value", r.Value), '}'))
	if len(r.Others) > 0 {
		b, err := json.Marshal(r.Others)
		if err != nil {
			return found, tenon.Errorf(tenon.CodeInvalid, "the other arguments are no JSON: %w", err)
		}
		params = member(params, "context", append(member([]byte{'{'}, "arguments", b), '}'))
	}
	var caller *Caller // only for the questions of a legacy server: no modern one may ask here (2026-07-28, MRTR)
	if !c.isModern() {
		caller = CallerOf(ctx)
	}
	raw, err := c.get(ctx, "completion/complete", params, about, caller)
	if err != nil {
		return found, err
	}
	list := rawjson.Field(raw, "completion")
	if !rawjson.IsArray(rawjson.Field(list, "values")) {
		return found, tenon.Errorf(tenon.CodeProtocol, "completion/complete gives no array \"values\"")
	}
	for v := range rawjson.Elements(rawjson.Field(list, "values")) {
		s, ok := rawjson.ParseString(v)
		switch {
		case !ok:
		case len(found.Values) == maxCompletions:
			found.More = true
		default:
			found.Values = append(found.Values, s)
		}
	}
	found.More = found.More || string(rawjson.Field(list, "hasMore")) == "true"
	var total float64
	if json.Unmarshal(rawjson.Field(list, "total"), &total) == nil && total > 0 && total < 1e9 {
		found.Total = int(total)
	}
	return found, nil
}
