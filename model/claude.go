package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Differences between Anthropic's models, by their names. Sources: the guides "Extended thinking", "Adaptive thinking"
// and "Migration" of Anthropic, and messages of its API.

// isClaude reports whether requests go to a model of Anthropic through Anthropic's API or Bedrock.
func (c Config) isClaude() bool {
	switch c.Wire() {
	case WireAnthropic:
		return true
	case WireBedrock:
		return strings.Contains(c.Model, "anthropic.")
	}
	return false
}

// claudeVersion returns the version in the name of a model. It returns 4, 6 for claude-opus-4-6,
// anthropic.claude-opus-4-6-v1:0 and anthropic/claude-opus-4.6, and 0, 0 for other names.
func claudeVersion(name string) (major, minor int) {
	_, rest, ok := strings.Cut(name, "claude-")
	if !ok {
		return 0, 0
	}
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '-' || r == '.' || r == '@' || r == ':' })
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || len(p) > 2 {
			continue
		}
		if i+1 < len(parts) && len(parts[i+1]) <= 2 {
			minor, _ = strconv.Atoi(parts[i+1])
		}
		return n, minor
	}
	return 0, 0
}

// thinksByItself reports whether a model decides how much it thinks (thinking.type adaptive). This is so from version
// 4.6 on.
func thinksByItself(name string) bool {
	major, minor := claudeVersion(name)
	return major > 4 || major == 4 && minor >= 6
}

// samplesByItself reports whether a model refuses sampling settings and budgets of thinking. This is so from version
// 4.7 on. "What's new in Claude Opus 4.7" and "What's new in Claude Sonnet 5" say that other values than the defaults
// return 400.
func samplesByItself(name string) bool {
	major, minor := claudeVersion(name)
	return major > 4 || major == 4 && minor >= 7
}

// checkThinking reports a setting that Anthropic refuses together with reasoning, or for this model. The messages of
// its API are: "temperature may only be set to 1 when thinking is enabled", "top_k must be unset when thinking is
// enabled", "top_p must be greater than or equal to 0.95 or unset when thinking is enabled".
func (c Config) checkThinking() (key string, reason error) {
	if !c.isClaude() {
		return "", nil
	}
	fixed, when := samplesByItself(c.Model), "for "+c.Model
	if !fixed {
		if !c.thinks() {
			return "", nil
		}
		when = "beside `reasoning`"
	}
	const advice = "leave it out"
	switch {
	case c.Temperature != nil && *c.Temperature != 1:
		return "temperature", fmt.Errorf("the provider refuses it %s; %s", when, advice)
	case c.TopK != 0:
		return "top_k", fmt.Errorf("the provider refuses it %s; %s", when, advice)
	case c.TopP != nil && (fixed && *c.TopP != 1 || *c.TopP < leastTopP):
		return "top_p", fmt.Errorf("the provider refuses it %s; %s", when, advice)
	}
	return "", nil
}

// leastTopP is the smallest top_p that Anthropic accepts together with thinking.
const leastTopP = 0.95

// thinks reports whether requests to an Anthropic model switch its thinking on.
func (c Config) thinks() bool {
	c = c.WithDefaults()
	for _, members := range []json.RawMessage{c.thinking(c.Wire(), c.MaxTokens), c.Extra} {
		if c.Wire() == WireBedrock {
			members = json.RawMessage(rawjson.Field(members, "additionalModelRequestFields"))
		}
		t := rawjson.String(rawjson.Field(rawjson.Field(members, "thinking"), "type"))
		if t == "enabled" || t == "adaptive" {
			return true
		}
	}
	return false
}

// mayThink reports whether Anthropic accepts thinking in a request. It refuses thinking together with a forced tool
// call: "Thinking may not be enabled when tool_choice forces tool use". It also refuses it after an answer with calls
// that was made without thinking: "When thinking is enabled, a final assistant message must start with a thinking
// block".
func mayThink(req *tenon.Request) bool {
	if len(req.Tools) > 0 && tenon.ParseChoice(req.ToolChoice).Forces() {
		return false
	}
	last := len(req.Messages) - 1
	if last < 1 || req.Messages[last].Role != tenon.RoleTool {
		return true
	}
	return slices.ContainsFunc(req.Messages[last-1].Parts, func(p tenon.Part) bool {
		return p.Type == tenon.PartThinking || p.Type == tenon.PartOpaque // redacted thinking
	})
}

// Thinks reports whether requests to the model switch on a kind of reasoning that the provider refuses together with a
// forced tool call. Such requests are sent without it.
func (c Config) Thinks() bool { return c.isClaude() && c.thinks() }

// withoutMember returns an object without a member.
func withoutMember(object json.RawMessage, name string) json.RawMessage {
	if rawjson.Field(object, name) == nil {
		return object
	}
	out := []byte{'{'}
	for k, v := range rawjson.Members(object) {
		if string(k) == name {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendString(out, string(k)), ':'), v...)
	}
	return append(out, '}')
}
