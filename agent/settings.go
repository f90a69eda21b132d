package agent

import "strconv"

// Settings is the block `settings` of an agent. It has keys of `models.NAME`. As there, not every API has each of them.
type Settings struct {
	// Maximum number of tokens in an answer.
	MaxTokens int `yaml:"max_tokens" min:"1" default:"the model's"`
	// Sampling temperature, 0 to 2.
	Temperature *float64 `yaml:"temperature" min:"0" max:"2" default:"the model's"`
	// Nucleus sampling, 0 to 1.
	TopP *float64 `yaml:"top_p" min:"0" max:"1" default:"the model's"`
	// Only so many of the most likely tokens are considered.
	TopK int `yaml:"top_k" min:"1" default:"the model's"`
	// Penalty for tokens that the text has already, -2 to 2.
	PresencePenalty *float64 `yaml:"presence_penalty" min:"-2" max:"2" default:"none"`
	// Penalty for tokens by their number in the text, -2 to 2.
	FrequencyPenalty *float64 `yaml:"frequency_penalty" min:"-2" max:"2" default:"none"`
	// How much the model reasons: an effort, or a number of tokens in quotes.
	Reasoning string `yaml:"reasoning" default:"the model's"`
	// Texts that end the answer, at most 4; not with `mode: react`.
	Stop []string `yaml:"stop" default:"the model's"`
	// Makes answers repeatable as far as the provider can.
	Seed *int `yaml:"seed" default:"the model's"`
	// Length of answers.
	Verbosity string `yaml:"verbosity" enum:"low,medium,high" default:"the model's"`
	// Class of service, in the provider's words.
	ServiceTier string `yaml:"service_tier" default:"the model's"`
	// true lets the provider store the answers.
	Store *bool `yaml:"store" default:"the model's"`
	// Additional data in answers with `api: responses`.
	Include []string `yaml:"include" default:"the model's"`
	// Probabilities of tokens, with so many alternatives of each token, 0 to 20.
	Logprobs *int `yaml:"logprobs" min:"0" max:"20" default:"the model's"`
	// Kinds of answers: text, audio, image.
	Modalities []string `yaml:"modalities" default:"the model's"`
	// Voice of answers in audio.
	Voice string `yaml:"voice" default:"the model's"`
}

// Sampling returns the settings in the form of a request, or nil if none is set.
func (s Settings) Sampling() *Sampling {
	out := &Sampling{MaxTokens: s.MaxTokens, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK,
		Presence: s.PresencePenalty, Frequency: s.FrequencyPenalty, Stop: s.Stop, Verbosity: s.Verbosity,
		ServiceTier: s.ServiceTier, Store: s.Store, Include: s.Include, Logprobs: s.Logprobs, Modalities: s.Modalities,
		Voice: s.Voice}
	if n, err := strconv.Atoi(s.Reasoning); err == nil {
		out.Thinking = &n
	} else {
		out.Effort = s.Reasoning
	}
	if s.Seed != nil {
		seed := int64(*s.Seed)
		out.Seed = &seed
	}
	if out.IsZero() {
		return nil
	}
	return out
}

// sampling returns the settings of the next request. The question's settings count more than the agent's. The text loop
// has no stop texts, which would cut off its steps.
func (s *State) sampling() *Sampling {
	out := s.spec.Sampling.Over(s.spec.Settings)
	if s.spec.React == nil || out == nil || len(out.Stop) == 0 {
		return out
	}
	now := *out
	now.Stop = nil
	if now.IsZero() {
		return nil
	}
	return &now
}
