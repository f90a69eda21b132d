package model

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// hostedSwitch is a member of requests that switches on tools of the provider. In models.NAME.extra, it is one of the
// provider's tools for rules and for the screen of `tenon trust`.
type hostedSwitch struct {
	wires []string
	path  string // a member, or a member of a member
	tool  string // name of the tool for the rules
	// harmless are the ids of a list's elements that are no tools. If it is nil, the whole member is the tool.
	harmless []string
}

// hostedSwitches is the table of these members. Sources: the request types of openai-go (web_search_options) and
// anthropic-sdk-go (mcp_servers); the documentation of OpenRouter (plugins), xAI (search_parameters), DashScope
// (enable_search), Groq (compound_custom), Azure OpenAI (data_sources) and of Converse (additionalModelRequestFields).
var hostedSwitches = [...]hostedSwitch{
	{[]string{WireChat, WireResponses}, "web_search_options", "web_search", nil},
	{[]string{WireChat, WireResponses}, "search_parameters", "web_search", nil},
	{[]string{WireChat, WireResponses}, "enable_search", "web_search", nil},
	{[]string{WireChat, WireResponses}, "plugins", "web_search",
		[]string{"file-parser", "response-healing", "auto-router", "moderation", "context-compression"}},
	{[]string{WireChat}, "compound_custom", "compound_custom", nil},
	{[]string{WireChat, WireResponses}, "data_sources", "file_search", nil},
	{[]string{WireChat, WireResponses, WireAnthropic}, "mcp_servers", "mcp_servers", nil},
	{[]string{WireBedrock}, "additionalModelRequestFields.tools", "tools", nil},
	{[]string{WireBedrock}, "additionalModelRequestFields.mcp_servers", "mcp_servers", nil},
}

// onlineSuffix is the end of a model's name that switches on OpenRouter's web search.
const onlineSuffix = ":online"

// checkOnline refuses names of models that switch on a tool of the provider.
func (c Config) checkOnline() (string, error) {
	if u, err := url.Parse(c.BaseURL); c.Provider != "openrouter" && (err != nil ||
		u.Hostname() != "openrouter.ai" && !strings.HasSuffix(u.Hostname(), ".openrouter.ai")) {
		return "", nil
	}
	if name, ok := strings.CutSuffix(c.Model, onlineSuffix); ok {
		return "model", fmt.Errorf("'%s' at the end switches on a tool of the provider; write %s, and "+
			"use %s: {web_search: {}}, so that the rules decide about it", onlineSuffix, name, c.key("tools"))
	}
	for v := range rawjson.Elements(rawjson.Field(c.Extra, "models")) {
		if strings.HasSuffix(rawjson.String(v), onlineSuffix) {
			return "extra", fmt.Errorf("'models' has a name that ends with '%s', which switches on a tool of the "+
				"provider; use %s: {web_search: {}}", onlineSuffix, c.key("tools"))
		}
	}
	return "", nil
}

// SwitchedOn returns the names of the provider's tools that members of [Config.Extra] switch on.
func (c Config) SwitchedOn() []string {
	var names []string
	c.switches(func(s hostedSwitch) bool {
		if !slices.Contains(names, s.tool) {
			names = append(names, s.tool)
		}
		return true
	})
	return names
}

// offeredExtra returns [Config.Extra] without the members that switch on tools which a request may not use.
func (c Config) offeredExtra(hosted []string) json.RawMessage {
	return c.switches(func(s hostedSwitch) bool { return slices.Contains(hosted, s.tool) })
}

// switches calls keep for each member of Extra that switches on a tool. It returns Extra without the
// members that keep refuses.
func (c Config) switches(keep func(hostedSwitch) bool) json.RawMessage {
	if len(c.Extra) == 0 {
		return c.Extra
	}
	extra, wire := c.Extra, c.Wire()
	for _, s := range hostedSwitches {
		if !slices.Contains(s.wires, wire) {
			continue
		}
		member, inner, isInner := strings.Cut(s.path, ".")
		old := rawjson.Field(extra, member)
		switch {
		case isInner && isOn(rawjson.Field(old, inner)) && !keep(s):
			extra = withMember(extra, member, withoutMember(old, inner))
		case isInner || !isOn(old):
		case s.harmless == nil:
			if !keep(s) {
				extra = withoutMember(extra, member)
			}
		default:
			if rest, found := s.rest(old); found && !keep(s) {
				extra = withMember(extra, member, rest)
			}
		}
	}
	return extra
}

// rest returns the harmless elements of a list, and whether there are others.
func (s hostedSwitch) rest(list json.RawMessage) (rest json.RawMessage, found bool) {
	rest = json.RawMessage{'['}
	for v := range rawjson.Elements(list) {
		if !slices.Contains(s.harmless, rawjson.String(rawjson.Field(v, "id"))) {
			found = true
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(rest, v...)
	}
	return append(rest, ']'), found
}

// isOn reports whether the value of a member switches anything on.
func isOn(v json.RawMessage) bool {
	switch strings.Join(strings.Fields(string(v)), "") {
	case "", "null", "false", "[]":
		return false
	}
	return rawjson.String(rawjson.Field(v, "mode")) != "off"
}

// withMember returns an object with another value of a member.
func withMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	rest := withoutMember(object, name)
	out := append([]byte(nil), rest[:len(rest)-1]...)
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(append(rawjson.AppendString(out, name), ':'), value...), '}')
}
