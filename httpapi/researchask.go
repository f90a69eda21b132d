package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

// ChatParameters are ResearchAI's RequestParameters. They take precedence over the members of the same name in
// [ChatRequest].
type ChatParameters struct {
	Temperature *float64 `json:"temperature"`
	MaxTokens   int      `json:"maxTokens"`
	TopP        *float64 `json:"topP"`
	Presence    *float64 `json:"presencePenalty"`
	Frequency   *float64 `json:"frequencyPenalty"`
	Stop        []string `json:"stopSequences"`
	Seed        *int64   `json:"seed"`
}

// sampling returns the sampling parameters of a request, or nil if there is none.
func (q *ChatRequest) sampling() *agent.Sampling {
	p := q.Parameters
	s := &agent.Sampling{MaxTokens: cmp.Or(p.MaxTokens, q.MaxTokens), Temperature: cmp.Or(p.Temperature, q.Temperature),
		TopP: p.TopP, Presence: p.Presence, Frequency: p.Frequency, Stop: p.Stop, Seed: p.Seed}
	if s.IsZero() {
		return nil
	}
	return s
}

// checkSampling checks the sampling parameters of a request under the names that the request has for them.
func (q *ChatRequest) checkSampling() error {
	names, p := map[string]string{"max_tokens": "maxTokens"}, q.Parameters
	within := func(name, key string, given bool) {
		if given {
			names[name] = "parameters." + key
		}
	}
	within("temperature", "temperature", p.Temperature != nil)
	within("max_tokens", "maxTokens", p.MaxTokens != 0)
	within("top_p", "topP", true)
	within("presence_penalty", "presencePenalty", true)
	within("frequency_penalty", "frequencyPenalty", true)
	within("stop", "stopSequences", true)
	if s := q.sampling(); s != nil {
		return model.CheckRanges(s, names)
	}
	return nil
}

// modelOf returns the model of a request. This is the model that the request names, or a model of the provider that it
// names. It returns "" if the agent's own model is used.
func (c *call) modelOf(q ChatRequest, ask host.Question) (string, error) {
	if q.Provider == "" {
		return q.Model, nil
	}
	want := strings.ToLower(q.Provider)
	if want == "claude" {
		want = "anthropic"
	}
	cfg := c.h.Service().Info().Config
	provider := func(name string) string {
		if m, ok := cfg.Models[name]; ok {
			return m.Provider
		}
		p, _, _ := strings.Cut(name, "/")
		return p
	}
	if q.Model != "" {
		if p := provider(q.Model); p != want {
			return "", tenon.Errorf(tenon.CodeInvalid, "model '%s' is not of providerId '%s', but of '%s'; "+
				"leave one of them out", tenon.Visible(q.Model), tenon.Visible(q.Provider), tenon.Visible(p))
		}
		return q.Model, nil
	}
	name := ask.Agent
	if name == "" && q.SessionID != "" {
		if s, err := c.mySession(q.SessionID); err == nil {
			name = s.Agent
		}
	}
	if a, ok := cfg.Agents[cmp.Or(name, "default")]; ok && a.Model != "" && provider(a.Model) == want {
		return "", nil
	}
	var known []string
	for _, m := range slices.Sorted(maps.Keys(cfg.Models)) {
		if cfg.Models[m].Provider == want {
			return m, nil
		}
		known = append(known, fmt.Sprintf("%s (%s)", m, cfg.Models[m].Provider))
	}
	return "", tenon.Errorf(tenon.CodeInvalid, "no model of providerId '%s' is configured; models: %s. "+
		"Leave providerId out, or add one to models in tenon.yaml", tenon.Visible(q.Provider),
		cmp.Or(strings.Join(known, ", "), "none"))
}

// ofChat is an error of a chat, with the run and the session if they were already created.
type ofChat struct {
	err          error
	run, session string
}

func (e ofChat) Error() string { return e.err.Error() }
func (e ofChat) Unwrap() error { return e.err }

var _ error = ofChat{}
