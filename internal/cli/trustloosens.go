package cli

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config"
)

// loosens adds settings of the project, and of the profile that it names, that allow more than the default. The
// direction of each key decides this.
func (b *itemBuilder) loosens() {
	cfg := b.cfg
	values, err := cfg.Show("")
	if err != nil {
		return
	}
	conditions := map[string]string{} // rule → its condition
	for _, v := range values {
		if rule, ok := strings.CutSuffix(v.Path, ".when"); ok {
			conditions[rule] = unquoted(v.Value)
		}
	}
	profile := cfg.Layer("profile") == config.LayerProject
	for _, v := range values {
		mine := cfg.Layer(v.Path) == config.LayerProject || profile && strings.HasPrefix(v.Origin, "profile ")
		switch {
		case !mine:
		case strings.HasPrefix(v.Path, "policy.rules[") && strings.HasSuffix(v.Path, "].verdict"):
			if unquoted(v.Value) == "allow" {
				when := cmp.Or(conditions[strings.TrimSuffix(v.Path, ".verdict")], "true")
				b.list = append(b.list, trustItem(itemLoosens, v.Path, "allow: calls that match run without a "+
					"question, if "+whole(when)))
			}
		case strings.Contains(v.Path, ".set_params."):
			b.list = append(b.list, trustItem(itemLoosens, v.Path, "send "+whole(v.Value)+" as this argument of "+
				"every call"))
		case v.Path == "store.retention":
			b.list = append(b.list, trustItem(itemStore, v.Path, "delete sessions that are older than "+
				unquoted(v.Value)))
		case isLooser(v):
			b.list = append(b.list, trustItem(itemLoosens, v.Path, v.Value+": "+effectOf(v.Path)))
		}
	}
}

// isLooser reports whether a setting allows more than its default. Programs, calls and files have separate items.
func isLooser(v config.Value) bool {
	k, ok := config.DirectionOf(v.Path)
	if !ok || k.Effect("", v.Value) != config.Loosens {
		return false
	}
	switch {
	case strings.HasPrefix(v.Path, "policy.rules["):
		return strings.HasSuffix(v.Path, "].verdict") && unquoted(v.Value) == "allow"
	case strings.Contains(v.Path, ".annotations."): // a separate item (readOnly)
		return false
	case strings.HasPrefix(v.Path, "serve.") || strings.HasPrefix(v.Path, "telemetry.") ||
		strings.HasPrefix(v.Path, "tables."):
		return false
	case k.Combine == config.CombineEntry:
		return slices.ContainsFunc([]string{".sampling", ".elicitation", ".resource_links", ".validate",
			".arguments_mode", ".allow_private", ".caller_credentials.bearer", ".caller_credentials.sign_in",
			".caller_credentials.exchange"},
			func(end string) bool { return strings.HasSuffix(v.Path, end) })
	}
	return k.Combine == config.CombineEach || k.Combine == config.CombineStrictest ||
		k.Combine == config.CombineMin || k.Combine == config.CombineIntersection
}

// maxItemText bounds the characters of a condition or an argument in the list.
const maxItemText = 1000

// whole returns a text of the project for the list of what a project can do. A text that is too long is cut and
// followed by its digest, so that every change of the text changes the list.
func whole(s string) string {
	if short := bounded(s, maxItemText); short != s {
		return short + ", sha256:" + digestOf([]byte(s))[:16]
	}
	return s
}

func unquoted(s string) string {
	var text string
	if json.Unmarshal([]byte(s), &text) == nil {
		return text
	}
	return strings.Trim(s, `"'`)
}

// effects describes settings that loosen, by the end of their path.
var effects = []struct{ end, text string }{
	{"approval.mode", "calls run without a question"},
	{"approval.if", "only calls that match ask first"},
	{".verdict", "calls that match run without a question"},
	{"pins.changed", "tools may change without a question"},
	{"pins.new", "new tools are offered without a question"},
	{"urls.allow_private", "private addresses and this machine may be called"},
	{"urls.require_https", "no warning about addresses without encryption"},
	{"literal_secrets", "no warning about tokens in the file"},
	{"env_unresolved", "a variable that is not set is empty"},
	{".retry", "calls are repeated, even calls that change something"},
	{"cache.force", "results of calls that change something are used again"},
	{"cache.scope", "results are used again in other runs"},
	{"cache.ttl", "results are used again"},
	{".trusted", "its hints about its tools are believed"},
	{".sampling", "it may ask your models"},
	{".validate", "arguments are not held to the schema"},
	{"max_turns", "runs may have more turns"},
	{"parallel_tools", "more calls run at a time"},
	{"max_depth", "agents may call agents more deeply"},
	{"timeout", "calls and runs may take longer"},
	{".bearer", "callers' credentials are passed on"},
}

// effectOf describes the effect of a setting that loosens.
func effectOf(path string) string {
	for _, e := range effects {
		if path == e.end || strings.HasSuffix(path, e.end) {
			return e.text
		}
	}
	return "more than the default"
}
