package httpapi

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// IgnoredHeader lists the parameters of POST /v1/chat/completions that have no effect and that OpenAI's API does not
// have.
const IgnoredHeader = "Tenon-Ignored"

// maxIgnored bounds the names in [IgnoredHeader].
const maxIgnored = 16

// parameterName matches the names that may be in [IgnoredHeader].
var parameterName = lazyregexp.New(`^[A-Za-z0-9_.-]{1,64}$`)

// silentParameters returns parameters that OpenAI documents and that do not affect an agent's answer: labels, caches
// and tiers of service.
func silentParameters() []string {
	return []string{"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
		"prompt_cache_retention"}
}

// foreignParameters returns parameters of other vendors' APIs and proxies. They resemble parameters of OpenAI, but they
// are not misspellings of them.
func foreignParameters() []string {
	return []string{"models", "mode", "reasoning", "thinking", "tool_ids", "tool_config", "max_output_tokens", "format",
		"template", "stop_token_ids", "stop_sequences", "min_tokens", "top_a", "min_p", "stream_tokens"}
}

// checkNames checks the names of the request's parameters. It refuses a name that is probably a misspelling of a
// parameter that the request does not contain. It ignores other unknown names, because clients and proxies send
// parameters of other vendors. A header of the answer lists the ignored names. Errors: invalid.
func (c *call) checkNames() error {
	known := silentParameters()
	for f := range reflect.TypeFor[completionRequest]().Fields() {
		if name := f.Tag.Get("json"); name != "" {
			known = append(known, name)
		}
	}
	var has, ignored []string
	for key := range rawjson.Members(c.body) {
		has = append(has, string(key))
	}
	for _, name := range has {
		if slices.Contains(known, name) {
			continue
		}
		near := tenon.Nearest(name, known)
		if near != "" && !slices.Contains(has, near) && !slices.Contains(foreignParameters(), name) {
			return tenon.Errorf(tenon.CodeInvalid, "unknown parameter '%s'; did you mean '%s'?", tenon.Visible(name),
				near)
		}
		if parameterName().MatchString(name) && len(ignored) < maxIgnored {
			ignored = append(ignored, name)
		}
	}
	if len(ignored) > 0 {
		c.w.Header().Set(IgnoredHeader, strings.Join(ignored, ", "))
	}
	return nil
}
