package config

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// Hints contains the values for the template of [Starter].
type Hints struct {
	Name string // of the project; if empty, it is left out
	// Demo is the command of a server that needs only tenon itself. If empty, the server is commented out.
	Demo []string
	// Provider is the provider to enable ("anthropic", "openai", "ollama", "script"). If empty, all are commented
	// out.
	Provider string
	Model    string // the provider's name for the model; if empty, the template's model
	Path     string // for script: the file with the steps
}

var starterModels = []struct{ name, provider, model, extra, note string }{
	{"claude", "anthropic", "claude-sonnet-4-5", "api_key: {env: ANTHROPIC_API_KEY}", "https://console.anthropic.com"},
	{"gpt", "openai", "gpt-5", "api: responses, api_key: {env: OPENAI_API_KEY}", "https://platform.openai.com"},
	{"gemini", "gemini", "gemini-2.5-flash", "api_key: {env: GEMINI_API_KEY}", "https://aistudio.google.com"},
	{"local", "ollama", "llama3.2", "", "a model on this machine: ollama serve"},
	{"other", "openai-compatible", "NAME", "base_url: http://127.0.0.1:8000/v1", "any server that speaks OpenAI's API"},
	{"scripted", "script", "", "path: steps.yaml", "answers from a file, without a model"},
}

// Starter returns the tenon.yaml of `tenon init`. It contains comments, and is valid as it is.
func Starter(h Hints) []byte {
	var b bytes.Buffer
	b.WriteString("# yaml-language-server: " +
		"$schema=https://raw.githubusercontent.com/tenonhq/tenon/main/config/tenon.schema.json\n")
	b.WriteString("# What tenon connects and which rules hold. Check this file with: tenon config " +
		"validate\nversion: 1\n")
	if h.Name != "" {
		b.WriteString("name: " + scalar(h.Name) + "\n")
	}
	b.WriteString("\n# MCP servers. Each is started (or called) when it is first needed.\nservers:\n")
	demo := h.Demo
	if len(demo) == 0 {
		demo = []string{"tenon", "demo-server"}
	}
	off := ""
	if len(h.Demo) == 0 {
		off = "# "
	}
	b.WriteString("  " + off + "demo:                         # a small server that is built into tenon\n")
	b.WriteString("  " + off + "  command: " + scalar(demo[0]) + "\n  " + off + "  args: " + flow(demo[1:]) + "\n")
	b.WriteString(`
  # Files below a folder, with the server from npm (needs Node.js):
  # filesystem:
  #   command: npx
  #   args: [-y, "@modelcontextprotocol/server-filesystem", .]
  #   exclude: ["*delete*"]       # globs on tool names; these are left out
  #   policy: {approval: always}  # every call of this server asks first

  # A server on the network:
  # cloud:
  #   url: https://mcp.example.com/mcp
  #   auth: {type: bearer, secret: cloud_token}

# Where secrets are read: {env: VARIABLE}, {file: PATH} or {command: [pass, show, cloud]}.
# secrets:
#   cloud_token: {env: CLOUD_TOKEN}

# Language models. The first one is the default.
`)
	on := -1
	for i, m := range starterModels {
		if m.provider == h.Provider {
			on = i
		}
	}
	if on >= 0 {
		b.WriteString("models:\n" + starterModel(on, h, "  "))
	} else {
		b.WriteString("# models:\n")
	}
	for i := range starterModels {
		if i != on {
			b.WriteString(starterModel(i, Hints{}, map[bool]string{true: "  # ", false: "#   "}[on >= 0]))
		}
	}
	b.WriteString(`
agents:
  default:
    description: Answers with the tools of all servers
    instructions:
      text: You are helpful. Use the tools where they help, and say what you did.

# Limits of one run.
limits:
  max_turns: 10                   # requests to the model
  parallel_tools: 4               # tool calls of one turn at a time
  run_timeout: 15m

# Rules for tool calls. tools.NAME.policy and servers.NAME.policy stand above these.
policy:
  defaults:
    approval: destructive         # never | always | destructive: all that is not marked read-only asks first
    retry: auto                   # auto | never | always: auto repeats only what is safe to repeat
`)
	return b.Bytes()
}

func starterModel(i int, h Hints, indent string) string {
	m := starterModels[i]
	if h.Model != "" && m.model != "" {
		m.model = h.Model
	}
	if h.Path != "" && m.provider == "script" {
		m.extra = "path: " + scalar(h.Path)
	}
	parts := []string{"provider: " + m.provider}
	if m.model != "" {
		parts = append(parts, "model: "+scalar(m.model))
	}
	if m.extra != "" {
		parts = append(parts, m.extra)
	}
	return indent + m.name + ": {" + strings.Join(parts, ", ") + "}  # " + m.note + "\n"
}

// scalar writes a text as YAML: plain if that is safe, otherwise in double quotes with escapes that JSON has, too.
func scalar(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("/._-", r))
	}) < 0 && ('a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z' || s[0] == '/' || s[0] == '.' && len(s) > 1 &&
		s[1] == '/')
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	var j bytes.Buffer
	tree.WriteString(&j, s)
	var b strings.Builder
	for _, r := range j.String() {
		if 0x7f <= r && r < 0xa0 || r == '\ufeff' { // characters that JSON allows but YAML refuses or folds
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func flow(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = scalar(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
