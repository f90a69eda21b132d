package config

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/servers"
)

// inert reports settings of a server that have no effect because of another setting.
func (k *checker) inert(p, transport string, s servers.Config) {
	refuse := func(key, why, hint string) {
		at := p + "." + key
		k.Add(k.keyed[at], at, fmt.Sprintf("'%s' has no effect %s", key, why), hint)
	}
	for key, on := range map[string]bool{"prompts_as_tools": s.PromptsAsTools,
		"resources_as_tools": s.ResourcesAsTools} {
		if on && !s.LoadsTools() {
			refuse(key, "with load_tools: false", "leave the server's own tools out with include: ['prompt:*', "+
				"'resources:*']")
		}
	}
	if s.PromptsAsTools && !s.LoadsPrompts() {
		refuse("prompts_as_tools", "with load_prompts: false", "")
	}
	if s.Lifecycle == servers.LifecyclePerCall {
		if s.Share {
			refuse("share", "with lifecycle per_call", "each call has its own connection")
		}
		if s.LoadResources && k.has(p+".load_resources") {
			refuse("load_resources", "with lifecycle per_call", "there is no connection at which they could be listed")
		}
		if k.has(p+".restart") && s.Restart != "" {
			refuse("restart", "with lifecycle per_call", "each call has its own connection")
		}
	}
	if !k.has(p+".protocol") || s.Protocol == "" || s.Protocol == servers.ProtocolAuto {
		return
	}
	switch {
	case transport == servers.TransportJSONRPC:
		refuse("protocol", "for jsonrpc transport", "there is no handshake in which a revision could be agreed on")
	case transport == servers.TransportSSE && !servers.IsLegacy(s.Protocol):
		k.bad(p+".protocol", "use transport http", "there is no sse transport in revision %s", s.Protocol)
	}
}

// noNUL reports a text that cannot be passed to a process.
func (k *checker) noNUL(p, text string) {
	if strings.ContainsRune(text, 0) {
		k.bad(p, "", "a process takes no text with a NUL character in it")
	}
}

// reversed returns the first empty range of a set of characters, such as z-a, or "" if there is none.
func reversed(set string) string {
	for i := 0; i+2 < len(set); i++ {
		if set[i+1] == '-' {
			if set[i] > set[i+2] {
				return set[i : i+3]
			}
			i += 2
		}
	}
	return ""
}
