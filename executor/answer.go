package executor

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/mcp/elicit"
)

// Answer answers a server's requests for input by a person's ruling: it contains the content of forms, the consent to
// URLs, and the model's answers. Errors: invalid (a form), limit, errors of the model.
func (x *Executor) Answer(ctx context.Context, run string, asked agent.Asking, r agent.Ruling) (*agent.Answer, error) {
	a := &agent.Answer{By: r.By, Reason: r.Reason}
	requests, err := elicit.ParseRequests(asked.Requests)
	if err != nil {
		return nil, err
	}
	forms, err := elicit.ParseForms(requests)
	if err != nil {
		return nil, err
	}
	contents := map[string]json.RawMessage{}
	if len(forms) > 1 && len(r.Arguments) > 0 && r.Verdict == tenon.Allow {
		if err := exactjson.Decode(r.Arguments, &contents); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid,
				"the server asks with %d forms: answer with an object of contents by their keys (%s): %w",
				len(forms), strings.Join(slices.Sorted(maps.Keys(forms)), ", "), err)
		}
	}
	out := map[string]json.RawMessage{}
	for key, q := range requests {
		form, isForm := forms[key]
		switch {
		case q.Method == agent.MethodSample:
			if r.Verdict != tenon.Allow {
				// The protocol cannot express a refusal, so the call ends.
				return &agent.Answer{By: r.By, Reason: r.Reason, Error: denied(r)}, nil
			}
			s, err := x.sampleModel(ctx, run, asked.Server, q.Params)
			if err != nil {
				return nil, err
			}
			out[key] = responseOf(s)
			a.Model, a.Usage, a.Cost = s.Model, sum(a.Usage, s.Usage), total(a.Cost, s.Cost)
		case q.Method == methodRoots:
			if r.Verdict != tenon.Allow {
				return &agent.Answer{By: r.By, Reason: r.Reason, Error: tenon.Errorf(tenon.CodeDenied,
					"%s does not name the roots", r.By)}, nil
			}
			out[key] = x.cfg.Server(asked.Server).Answers().RootsResult()
		case r.Verdict != tenon.Allow && r.Cancel:
			out[key] = tenon.EventData(cancelled)
		case r.Verdict != tenon.Allow:
			out[key] = tenon.EventData(declined)
		case !isForm:
			out[key] = tenon.EventData(map[string]string{"action": "accept"})
		default:
			content := contents[key]
			if len(forms) == 1 {
				content = r.Arguments
			}
			if content, err = form.Fill(content); err != nil {
				return nil, err
			}
			out[key] = tenon.EventData(map[string]any{"action": "accept", "content": content})
		}
	}
	a.Responses = tenon.EventData(out)
	return a, nil
}
