package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// efforts are the values of [tenon.Sampling.Effort], from the least to the most.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

// maxStops bounds the stop texts of a request (OpenAI API reference, stop).
const maxStops = 4

// samplingWire lists the settings of [tenon.Sampling] that a wire format can express, besides the settings that all
// wires have. A string is the name of a setting's member, or "" if the wire cannot express the setting.
type samplingWire struct {
	title                           string
	stop, presence, frequency, seed string
	efforts                         func(model string) []string // accepted values of Effort
	serial                          bool
}

// samplingWires is the table of wire formats. A scripted model ignores all settings.
var samplingWires = map[string]samplingWire{
	WireChat: {title: "Chat Completions", stop: "stop", presence: "presence_penalty", frequency: "frequency_penalty",
		seed: "seed", efforts: allEfforts, serial: true},
	WireResponses: {title: "the Responses API", efforts: allEfforts, serial: true},
	WireAnthropic: {title: "Anthropic's API", stop: "stop_sequences", efforts: claudeEfforts, serial: true},
	WireBedrock:   {title: "Bedrock's Converse", stop: "stopSequences", efforts: bedrockEfforts},
	WireOllama: {title: "Ollama's API", stop: "stop", presence: "presence_penalty", frequency: "frequency_penalty",
		seed: "seed", efforts: allEfforts},
	WireGemini: {title: "Gemini's API", stop: "stopSequences", presence: "presencePenalty",
		frequency: "frequencyPenalty", seed: "seed", efforts: geminiEfforts},
}

func allEfforts(string) []string { return efforts }

// claudeEfforts returns the efforts that an Anthropic model accepts (output_config.effort), by its name. Models before
// Opus 4.5 and Sonnet 4.6 accept none.
func claudeEfforts(name string) []string {
	switch {
	case !refersToTools(name), strings.HasPrefix(name, "claude-sonnet-4-5"):
		return nil
	case strings.Contains(name, "-4-5"), strings.Contains(name, "-4-6"):
		return []string{"low", "medium", "high"}
	}
	return []string{"low", "medium", "high", "xhigh"}
}

// geminiEfforts returns the efforts that a Gemini model accepts, by its name. Models before 2.5 do not reason.
func geminiEfforts(name string) []string {
	name = strings.TrimPrefix(name, "models/")
	switch {
	case strings.HasPrefix(name, "gemini-1"), strings.HasPrefix(name, "gemini-2.0"):
		return nil
	case strings.HasPrefix(name, "gemini-2.5-pro"): // its reasoning cannot be switched off
		return []string{"minimal", "low", "medium", "high"}
	case strings.HasPrefix(name, "gemini-2"):
		return []string{"none", "minimal", "low", "medium", "high"}
	}
	return []string{"minimal", "low", "medium", "high"}
}

// bedrockEfforts returns the efforts that a model of Amazon Bedrock accepts, by its name.
func bedrockEfforts(name string) []string {
	switch {
	case strings.Contains(name, "anthropic."):
		_, id, _ := strings.Cut(name, "anthropic.")
		return claudeEfforts(id)
	case strings.Contains(name, "openai.gpt-oss"), strings.Contains(name, "amazon.nova-2"):
		return []string{"low", "medium", "high"}
	}
	return nil
}

// CheckSampling reports the first setting that is out of range or that the model's wire format cannot express. The
// error uses the name of the setting in OpenAI's API. Errors: invalid.
func (c Config) CheckSampling(s *tenon.Sampling) error {
	if s == nil {
		return nil
	}
	if err := checkRanges(s); err != nil {
		return err
	}
	names := c.Unsent(s)
	if len(names) == 0 {
		with := c.With(s)
		key, reason := with.checkModalities()
		if key == "" {
			key, reason = with.checkThinking()
		}
		if key != "" {
			return tenon.Errorf(tenon.CodeInvalid, "%s cannot be sent to model '%s': %w", key, c.Model, reason)
		}
		return nil
	}
	w := samplingWires[c.Wire()]
	if can := c.effortsOf(); names[0] == effortSetting && len(can) > 0 {
		return tenon.Errorf(tenon.CodeInvalid, "reasoning_effort '%s' cannot be sent to model '%s'; it takes %s",
			s.Effort, c.Model, strings.Join(can, ", "))
	}
	if c.Refuses(names[0]) {
		w.title = c.WithDefaults().server().Name
	}
	return tenon.Errorf(tenon.CodeInvalid, "%s cannot be sent to model '%s': %s has no such parameter; leave it out, "+
		"or use another model", names[0], c.Model, w.title)
}

// effortSetting is the name of [tenon.Sampling.Effort], and settingSerial the name of [tenon.Sampling.Serial].
const (
	effortSetting = "reasoning_effort"
	settingSerial = "parallel_tool_calls"
)

// Unsent returns the names of the settings in s that the model's wire format cannot express. Requests to the model do
// not contain them.
func (c Config) Unsent(s *tenon.Sampling) []string {
	w, ok := samplingWires[c.Wire()]
	if s == nil || !ok {
		return nil
	}
	var names []string
	for _, x := range []struct {
		name    string
		missing bool
	}{
		{"stop", len(s.Stop) > 0 && w.stop == ""},
		{"presence_penalty", s.Presence != nil && w.presence == ""},
		{"frequency_penalty", s.Frequency != nil && w.frequency == ""},
		{"top_k", s.TopK != 0 && !c.takesTopK()},
		{"seed", s.Seed != nil && w.seed == ""},
		{settingSerial, s.Serial && (!w.serial || c.Refuses(settingSerial))},
		{effortSetting, s.Effort != "" && !slices.Contains(c.effortsOf(), s.Effort)},
	} {
		if x.missing {
			names = append(names, x.name)
		}
	}
	if s.Effort == "" && s.Thinking != nil && !c.takesTokens() {
		names = append(names, "reasoning_tokens")
	}
	asked := Config{}.With(s)
	for i := range settings {
		x := &settings[i]
		if x.key != "top_k" && x.isSet(asked) && (x.paths[c.Wire()] == "" || c.Refuses(x.key)) {
			names = append(names, x.key)
		}
	}
	return names
}

// checkRanges checks the values of settings under their names in OpenAI's API. Errors: invalid.
func checkRanges(s *tenon.Sampling) error { return CheckRanges(s, nil) }

// CheckRanges checks the values of settings. The error names each one that is wrong, by names where that has a name for
// the one of OpenAI's API (max_tokens). Errors: invalid.
func CheckRanges(s *tenon.Sampling, names map[string]string) error {
	var wrong []string
	bad := func(name, format string, args ...any) {
		if other, ok := names[name]; ok {
			name = other
		}
		wrong = append(wrong, name+" must "+fmt.Sprintf(format, args...))
	}
	between := func(name string, f *float64, least, most float64) {
		if f != nil && !(*f >= least && *f <= most) {
			bad(name, "be from %g to %g, not %g", least, most, *f)
		}
	}
	if s.MaxTokens < 0 {
		bad("max_tokens", "not be negative")
	}
	between("temperature", s.Temperature, 0, 2)
	between("top_p", s.TopP, 0, 1)
	between("presence_penalty", s.Presence, -2, 2)
	between("frequency_penalty", s.Frequency, -2, 2)
	if s.TopK < 0 {
		bad("top_k", "not be negative")
	}
	if s.Thinking != nil && *s.Thinking < 0 {
		bad("reasoning_tokens", "not be negative")
	}
	if s.Verbosity != "" && !slices.Contains([]string{"low", "medium", "high"}, s.Verbosity) {
		bad("verbosity", "be low, medium or high, not '%s'", tenon.Visible(s.Verbosity))
	}
	if len(s.Include) > maxIncluded {
		bad("include", "have at most %d elements", maxIncluded)
	}
	if len(s.Stop) > maxStops || slices.Contains(s.Stop, "") {
		bad("stop", "be at most %d texts that are not empty", maxStops)
	}
	if s.Effort != "" && !slices.Contains(efforts, s.Effort) {
		bad("reasoning_effort", "be one of %s, not '%s'", strings.Join(efforts, ", "), tenon.Visible(s.Effort))
	}
	if wrong == nil {
		return nil
	}
	return tenon.Errorf(tenon.CodeInvalid, "%s", strings.Join(wrong, "; "))
}

// AppendSampling appends the settings that have a plain member on a wire: stop, penalties and seed, each with a comma
// before it.
func AppendSampling(dst []byte, wire string, s *tenon.Sampling) []byte {
	w := samplingWires[wire]
	if len(s.Stop) > 0 && w.stop != "" {
		dst = append(dst, `,"`+w.stop+`":[`...)
		for i, text := range s.Stop {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rawjson.AppendString(dst, text)
		}
		dst = append(dst, ']')
	}
	if w.presence != "" {
		dst = AppendNumber(dst, w.presence, s.Presence)
		dst = AppendNumber(dst, w.frequency, s.Frequency)
	}
	if s.Seed != nil && w.seed != "" {
		dst = append(dst, `,"`+w.seed+`":`...)
		dst = strconv.AppendInt(dst, *s.Seed, 10)
	}
	return dst
}

// TakesEffort reports whether the model accepts an effort. A run can have several models, for example after a handover
// to another agent, and not all of them accept its effort.
func (c Config) TakesEffort(effort string) bool {
	_, ok := samplingWires[c.Wire()]
	return ok && effort != "" && slices.Contains(c.effortsOf(), effort)
}
