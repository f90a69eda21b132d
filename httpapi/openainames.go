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

// parameterName is the form of the names in [IgnoredHeader].
var parameterName = lazyregexp.New(`^[A-Za-z0-9_.-]{1,64}$`)

// silentParameters are documented by OpenAI and change no answer of an agent: labels, caches and tiers of service.
func silentParameters() []string {
	return []string{"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
		"prompt_cache_retention"}
}

// foreignParameters are sent by clients of other vendors' APIs and proxies. They are similar to parameters of OpenAI,
// and are no misspellings of them.
func foreignParameters() []string {
	return []string{"models", "mode", "reasoning", "thinking", "tool_ids", "tool_config", "max_output_tokens", "format",
		"template", "stop_token_ids", "stop_sequences", "min_tokens", "top_a", "min_p", "stream_tokens"}
}

// checkNames looks at the names of the request's parameters. A name that is probably a misspelling of a parameter which
// the request does not have is refused. Other unknown names are ignored, because clients and proxies send parameters of
// other vendors; a header of the answer lists them. Errors: invalid.
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
