package tenon

import "cmp"

// Sampling contains settings of one model request. For a zero field, the configured value of the model applies. Not
// every wire format can express every setting. A [Model] ignores settings that it cannot express, and package host
// refuses them before a run begins.
type Sampling struct {
	MaxTokens   int      `json:"max_tokens,omitempty"` // of one answer
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	// Presence and Frequency are penalties for tokens that already occur in the text, from -2 to 2.
	Presence  *float64 `json:"presence_penalty,omitempty"`
	Frequency *float64 `json:"frequency_penalty,omitempty"`
	// TopK limits the choice of each token to the most likely ones. If 0, the configured value applies.
	TopK int `json:"top_k,omitempty"`
	// Seed makes answers repeatable as far as the provider can.
	Seed *int64 `json:"seed,omitempty"`
	// Stop contains texts at which the answer ends. The answer does not contain them.
	Stop []string `json:"stop,omitempty"`
	// Effort is the amount of reasoning before an answer: none, minimal, low, medium, high or xhigh.
	Effort string `json:"reasoning_effort,omitempty"`
	// Thinking is the number of reasoning tokens, for models that accept a number. Effort takes precedence.
	Thinking *int `json:"reasoning_tokens,omitempty"`
	// Serial limits an answer to one tool call.
	Serial bool `json:"serial_calls,omitempty"`
	// Verbosity is the length of answers: low, medium or high.
	Verbosity string `json:"verbosity,omitempty"`
	// ServiceTier is the class of service, as the provider calls it.
	ServiceTier string `json:"service_tier,omitempty"`
	// Store lets the provider store the answer.
	Store *bool `json:"store,omitempty"`
	// Include names additional data of an answer of the Responses API.
	Include []string `json:"include,omitempty"`
	// Logprobs requests the probabilities of the tokens, and the given number of alternatives for each token, from 0 to
	// 20.
	Logprobs *int `json:"logprobs,omitempty"`
	// Modalities contains the kinds of answers: text, audio, image. Voice is the provider's name of the voice for
	// audio.
	Modalities []string `json:"modalities,omitempty"`
	Voice      string   `json:"voice,omitempty"`
}

// IsZero reports whether nothing is set.
func (s *Sampling) IsZero() bool {
	return s == nil || s.MaxTokens == 0 && s.Temperature == nil && s.TopP == nil && s.Presence == nil &&
		s.Frequency == nil && s.TopK == 0 && s.Seed == nil && len(s.Stop) == 0 && s.Effort == "" && s.Thinking == nil &&
		!s.Serial && s.Verbosity == "" && s.ServiceTier == "" && s.Store == nil && len(s.Include) == 0 &&
		s.Logprobs == nil && len(s.Modalities) == 0 && s.Voice == ""
}

// Over returns s with the values of base in its zero fields. It returns nil if both are zero. It does not modify s or
// base.
func (s *Sampling) Over(base *Sampling) *Sampling {
	switch {
	case base.IsZero() && s.IsZero():
		return nil
	case base.IsZero():
		return s
	case s.IsZero():
		return base
	}
	out := *s
	out.MaxTokens, out.TopK = cmp.Or(s.MaxTokens, base.MaxTokens), cmp.Or(s.TopK, base.TopK)
	out.Temperature, out.TopP = cmp.Or(s.Temperature, base.Temperature), cmp.Or(s.TopP, base.TopP)
	out.Presence, out.Frequency = cmp.Or(s.Presence, base.Presence), cmp.Or(s.Frequency, base.Frequency)
	out.Seed, out.Store, out.Logprobs = cmp.Or(s.Seed, base.Seed), cmp.Or(s.Store, base.Store),
		cmp.Or(s.Logprobs, base.Logprobs)
	if s.Effort == "" && s.Thinking == nil { // both set the model's reasoning
		out.Effort, out.Thinking = base.Effort, base.Thinking
	}
	out.Verbosity, out.ServiceTier = cmp.Or(s.Verbosity, base.Verbosity), cmp.Or(s.ServiceTier, base.ServiceTier)
	out.Voice, out.Serial = cmp.Or(s.Voice, base.Voice), s.Serial || base.Serial
	for _, list := range []struct {
		to   *[]string
		from []string
	}{{&out.Stop, base.Stop}, {&out.Include, base.Include}, {&out.Modalities, base.Modalities}} {
		if len(*list.to) == 0 {
			*list.to = list.from
		}
	}
	return &out
}

// TokenProb is a token of an answer and its probability.
type TokenProb struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"` // the natural logarithm of the probability
	// Bytes contains the bytes of a token that is not valid UTF-8, if the provider reports them.
	Bytes []byte `json:"bytes,omitempty"`
	// Top contains the most likely tokens at this position. This token may be one of them.
	Top []TokenProb `json:"top,omitempty"`
}
