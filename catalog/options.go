package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// optionNames maps the names of providers in provider_options to the names in this package.
var optionNames = map[string]string{"anthropic": "anthropic", "openai": "openai", "gemini": "gemini",
	"google": "gemini"}

// OptionProviders returns the names of providers that options of tools may have, sorted.
func OptionProviders() []string { return slices.Sorted(maps.Keys(optionNames)) }

// reservedOptions are the members of a tool that tenon writes itself.
var reservedOptions = []string{"name", "description", "type", "parameters", "parametersJsonSchema", "input_schema"}

// NormalOptions returns the options of a tool in the form in which they are stored: provider → options of its tool. It
// also reads AIDK's form, in which the options of OpenAI are under function, and Gemini is called google. The error
// names an option that cannot be sent, and has code config.
func NormalOptions(all map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if len(all) == 0 {
		return all, nil
	}
	out := make(map[string]json.RawMessage, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		provider, ok := optionNames[name]
		if !ok {
			return nil, badOption(name, "no such provider; providers: "+strings.Join(OptionProviders(), ", "))
		}
		options, ok := parseObject(all[name])
		if !ok {
			return nil, badOption(name, "must be a map of options")
		}
		options, err := optionsOf(provider, name, options)
		if err != nil {
			return nil, err
		}
		if before, twice := out[provider]; twice {
			return nil, badOption(name, fmt.Sprintf("%s has options already: %s", provider,
				shorten(string(before), 100)))
		}
		out[provider] = options.raw()
	}
	return out, nil
}

// optionsOf checks the options for one provider.
func optionsOf(provider, name string, options object) (object, error) {
	if f := options.get("function"); f != nil && provider == "openai" {
		inner, ok := parseObject(f)
		if !ok {
			return nil, badOption(name+".function", "must be a map of options")
		}
		options = options.without("function")
		for _, m := range inner {
			if v := options.get(m.key); v != nil && !bytes.Equal(v, m.value) {
				return nil, badOption(name+".function."+m.key, "differs from "+name+"."+m.key+"; keep one of them")
			}
			options = options.set(m.key, m.value)
		}
	}
	if v := options.get("grounding"); v != nil && provider == "gemini" {
		if string(v) != "false" {
			return nil, badOption(name+".grounding", "tools cannot be grounded: Gemini's search is a separate tool")
		}
		options = options.without("grounding") // false is how tenon sends all tools
	}
	for _, m := range options {
		switch {
		case slices.Contains(reservedOptions, m.key):
			return nil, badOption(name+"."+m.key, "tenon sets it; use transform, or the entry of tools")
		case m.key == strictKey && string(m.value) != "true" && string(m.value) != "false":
			return nil, badOption(name+"."+m.key, "must be true or false")
		}
	}
	return options, nil
}

func badOption(path, why string) error {
	return tenon.Errorf(tenon.CodeConfig, "provider_options.%s: %s", path, why)
}

// options normalizes the provider options of a tool, from whatever source they come.
func (c *shaper) options() string {
	options, err := NormalOptions(c.t.Rules.Options)
	if err != nil {
		c.broken = true
		return err.Error()
	}
	c.t.Rules.Options = options
	return ""
}

// mergedOptions returns the options of base, overlaid with the options of over, in normalized form.
func mergedOptions(base, over map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if len(over) == 0 {
		return base, nil
	}
	base, err := NormalOptions(base)
	if err != nil {
		return nil, err
	}
	if over, err = NormalOptions(over); err != nil {
		return nil, err
	}
	return mergeOptions(base, over), nil
}
