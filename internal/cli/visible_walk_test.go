package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// evil is part of every text of the walk's server, model, files and arguments. It contains characters that change the
// direction of text (U+202E, U+2066), invisible characters (U+200B, a tag), and characters that control terminals (ESC,
// BEL, C1).
const evil = "x\u202ey\u2066\u200b\U000e0041\x1b]0;t\x07\u009b35mz"

// evilName replaces evil where control characters are not permitted, such as in names of files.
const evilName = "x\u202ey\u2066\u200b\U000e0041z"

// evilJSON returns a text as a JSON string. It does not escape the characters that JSON permits unescaped.
func evilJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text always encodes
	return strings.TrimSpace(b.String())
}

// evilServer starts a server that returns evil in every text of the protocol.
func evilServer(t *testing.T) string {
	t.Helper()
	e := evilJSON(evil)
	tool := func(name, schema, result string, annotations string) mcp.ServerTool {
		return mcp.ServerTool{
			Definition: json.RawMessage(`{"name":"` + name + `","title":` + e + `,"description":` + e + `,"annotations":{"title":` + e + annotations + `},"inputSchema":` + schema + `}`),
			Call: func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
				r.Log("error", evil)
				r.Progress(1, 2, evil)
				if result == "" {
					return nil, &jsonrpc.Error{Code: -32000, Message: evil, Data: json.RawMessage(e)}
				}
				return json.RawMessage(result), nil
			}}
	}
	open := `{"type":"object","properties":{"a":{"type":"string","description":` + e + `}}}`
	text := `{"content":[{"type":"text","text":` + e + `},{"type":"resource_link","uri":` + e + `,"name":` + e + `,"mimeType":` + e + `}]`
	resource := `{"uri":"evil://a","name":` + e + `,"title":` + e + `,"description":` + e + `,"mimeType":` + e
	s, err := mcp.NewServer(mcp.ServerConfig{Name: evil, Version: evil, Instructions: evil, NoModern: true,
		Tools: []mcp.ServerTool{
			tool("look", open, text+`}`, `,"readOnlyHint":true`),
			tool("data", open, `{"content":[],"structuredContent":{`+e+`:`+e+`}}`, `,"readOnlyHint":true`),
			tool("change", open, text+`}`, ""),
			tool("fails", open, text+`,"isError":true}`, `,"readOnlyHint":true`),
			tool("breaks", open, "", `,"readOnlyHint":true`),
			tool(evilName, open, text+`}`, ""),
			tool("hidden", `{"type":"object","properties":{`+e+`:{}}}`, text+`}`, ""),
		},
		Offers: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			switch method {
			case "prompts/list":
				return json.RawMessage(`{"prompts":[{"name":"greet","title":` + e + `,"description":` + e + `,"arguments":[{"name":"who","description":` + e + `}]},{"name":` + e + `}]}`), nil
			case "prompts/get":
				return json.RawMessage(`{"description":` + e + `,"messages":[{"role":"user","content":{"type":"text","text":` + e + `}}]}`), nil
			case "resources/list":
				return json.RawMessage(`{"resources":[` + resource + `},{"uri":` + e + `,"name":` + e + `}]}`), nil
			case "resources/templates/list":
				return json.RawMessage(`{"resourceTemplates":[{"uriTemplate":"evil://{a}","name":` + e + `,"description":` + e + `}]}`), nil
			case "resources/read":
				return json.RawMessage(`{"contents":[{"uri":"evil://a","mimeType":` + e + `,"text":` + e + `}]}`), nil
			}
			return nil, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(h.Close)
	return h.URL
}

// evilRegistry is a registry of servers.
func evilRegistry(t *testing.T) string {
	t.Helper()
	e := evilJSON(evil)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"servers":[{"server":{"name":"io.example/evil","description":` + e + `,"title":` + e + `,"version":` + e +
			`,"repository":{"url":` + e + `},"packages":[{"registryType":"npm","identifier":` + e + `,"version":` + e + `,"transport":{"type":"stdio"}}],"remotes":[{"type":"streamable-http","url":"https://a.example/` + evilName + `"}]}}]}`))
	}))
	t.Cleanup(h.Close)
	return h.URL
}

// yaml writes a text as a quoted scalar of YAML.
func yamlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		fmt.Fprintf(&b, `\U%08x`, r)
	}
	return b.String() + `"`
}

// evilFiles writes the files that the commands read into the current folder.
func evilFiles(t *testing.T, server, registry string) {
	t.Helper()
	y, e := yamlText(evil), evilJSON(evil)
	for name, text := range map[string]string{
		"tenon.yaml": "servers:\n  s: {url: \"" + server + "\", title: " + y + ", description: " + y + "}\n" +
			"  noisy: {command: sh, args: [noisy.sh]}\n" +
			"  down: {url: \"http://127.0.0.1:1/" + evilName + "\"}\n" +
			"registry: {url: \"" + registry + "\"}\n" +
			"models: {m: {provider: script, path: model.yaml}}\n" +
			"agents: {default: {description: " + y + ", instructions: {text: " + y + "}}}\n" +
			"tools:\n  w: {kind: workflow, path: w.yaml}\n" +
			"  see: {server: s, remote_name: data, title: " + y + ", description: " + y + "}\n",
		"bad.yaml": "servers:\n  " + y + ": {command: 1}\n  s: {" + y + ": 1, transport: " + y + "}\n" + y + ": 2\n",
		"model.yaml": "conversations:\n  - match: calls\n    steps: [{thinking: " + y + ", text: " + y + ", calls: [{name: look, arguments: {a: " + y + "}}, {name: fails}, {name: breaks}, {name: " + y + "}, {name: change, arguments: {a: " + y + "}}]}, {text: " + y + "}]\n" +
			"  - match: broken\n    steps: [{error: {message: " + y + "}}]\n  - steps: [{thinking: " + y + ", partial: " + y + ", text: " + y + "}]\n",
		"w.yaml":         "kind: workflow\nversion: 1\nname: w\ndescription: " + y + "\nsteps:\n  - id: one\n    tool: look\n    server: s\n    args: {a: " + yamlText(evilJSON(evil)) + "}\n",
		"wrong.yaml":     "kind: workflow\nversion: 1\nname: w\nsteps:\n  - id: " + y + "\n    tool: " + y + "\n    " + y + ": 1\n",
		"eval.yaml":      "cases:\n  - name: " + y + "\n    question: " + y + "\n    expect: {answer: {contains: " + y + "}}\n",
		"mcp.json":       `{"mcpServers":{"one":{"command":` + e + `,"args":[` + e + `],"x":1},` + e + `:{"command":"true",` + e + `:1}}}`,
		"talk.json":      `[{"role":"user","content":` + e + `},{"role":"assistant","content":` + e + `},{"role":"user","content":` + e + `},{"role":"assistant","content":` + e + `}]`,
		"bad.json":       `[{"role":` + e + `,"content":` + e + `}]`,
		"talk.md":        "## User\n\n" + evil + "\n\n## Assistant\n\n" + evil + "\n",
		"noisy.sh":       `printf 'x\342\200\256y\033]0;t\007\302\2335\n' >&2; exit 3`,
		"call.json":      `{"tool":"change","arguments":{"a":` + e + `}}`,
		"bad-call.json":  `{"tool":` + e + `,` + e + `:1}`,
		evilName + ".md": evil,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// walk has every command with arguments that make it print texts from other sources. Each one is run with text, JSON
// and JSON lines as its output, to a pipe and to a terminal. A command that is missing here fails the test.
var walk = []struct {
	verb string
	args []string
	ours bool // it says nothing of others
}{
	{"version", nil, true}, {"docs", []string{"scripts"}, true}, {"man", []string{"tools", "list"}, true}, {"config schema", nil, true}, {"models prices", nil, true}, {"demo", []string{"--help"}, true}, // these print only texts of tenon itself

	{"tools list", nil, false}, {"tools list", []string{"--out", "tools.arrow"}, true}, {"tools list", []string{"--server", evil}, false},
	{"tools show", []string{"look"}, false}, {"tools show", []string{"see"}, false}, {"tools show", []string{evil}, false},
	{"tools search", []string{"x"}, false}, {"tools lint", nil, false},
	{"tools call", []string{"look", "a=" + evil}, false}, {"tools call", []string{"see"}, false}, {"tools call", []string{"fails"}, false}, {"tools call", []string{"breaks"}, false},
	{"tools call", []string{evil}, false}, {"tools call", []string{"look", evil + "=1"}, false}, {"tools call", []string{"look", "--params", "@" + evilName}, false}, {"tools call", []string{"--table", "tools.arrow", "look"}, false},
	{"tools pins", nil, false}, {"tools pins accept", []string{evil}, false}, {"tools pins diff", []string{evil}, false}, {"tools pins forget", []string{evil}, false},
	{"servers list", nil, false}, {"servers get", []string{"s"}, false}, {"servers get", []string{evil}, false}, {"servers test", []string{"s"}, false}, {"servers test", []string{"down"}, false},
	{"servers enable", []string{"noisy"}, true}, {"servers test", []string{"noisy"}, false}, {"servers logs", []string{"noisy"}, false}, {"servers disable", []string{"noisy"}, true}, {"servers disable", []string{"down"}, true},
	{"servers restart", []string{evil}, false}, {"servers login", []string{evil}, false}, {"servers logout", []string{evil}, false},
	{"servers search", []string{"evil"}, false},
	{"prompts list", nil, false}, {"prompts get", []string{"s", "greet", "who=" + evil}, false}, {"prompts get", []string{"s", evil}, false},
	{"resources list", nil, false}, {"resources read", []string{"s", "evil://a"}, false}, {"resources read", []string{"s", evil}, false}, {"resources watch", []string{"s", evil}, false},
	{"run", []string{evil}, false}, {"run", []string{"calls", "--yes"}, false}, {"run", []string{"broken"}, false}, {"run", []string{"--agent", evil, "q"}, false}, {"run", []string{"--print-prompt", evil}, false},
	{"run", []string{"calls"}, false}, {"approvals list", nil, false}, {"approvals show", []string{"-"}, false}, {"approvals show", []string{evil, "--full"}, false}, {"approvals allow", []string{evil}, false}, {"approvals deny", []string{evil}, false},
	{"approvals allow", []string{"-", "--args", `{"a":` + evilJSON(evil) + `}`}, false}, {"approvals grants", nil, true}, {"approvals revoke", []string{evil}, false},
	{"runs list", nil, false}, {"runs show", []string{"-1"}, false}, {"runs show", []string{evil}, false}, {"runs events", []string{"-1"}, false}, {"runs replay", []string{"-1"}, true}, {"runs follow", []string{"-1", "--no-input"}, false},
	{"runs export", []string{"-1", "--workflow"}, false}, {"runs steer", []string{"-1", evil}, true}, {"runs resume", []string{"-1"}, false}, {"runs cancel", []string{evil}, false},
	{"sessions list", nil, false}, {"sessions show", []string{"-1"}, false}, {"sessions show", []string{"-1", "--tools"}, false}, {"sessions rename", []string{"-1", evil}, false}, {"sessions search", []string{"x"}, false},
	{"sessions export", []string{"-1"}, false}, {"sessions export", []string{"-1", "--format", "markdown"}, false}, {"sessions import", []string{"talk.json"}, false}, {"sessions import", []string{"talk.md"}, false}, {"sessions import", []string{"bad.json"}, false},
	{"sessions fork", []string{"-1", "--title", evil}, false}, {"sessions compact", []string{"-1"}, false}, {"sessions prune", []string{"--older-than", evil}, false},
	{"stats agents", nil, true}, {"stats days", nil, true}, {"stats models", nil, true}, {"stats principals", nil, true}, {"stats servers", nil, true}, {"stats sessions", nil, false}, {"stats tools", nil, true},
	{"models list", nil, true}, {"schedules list", nil, true}, {"models list", []string{"--provider", evil}, false}, {"models test", []string{evil}, false}, {"models pull", []string{evil + "/x"}, false}, {"models login", []string{evil}, false}, {"models logout", []string{evil}, false},
	{"policy explain", []string{"change"}, true}, {"policy explain", []string{evil}, false}, {"policy test", []string{"call.json"}, true}, {"policy test", []string{"bad-call.json"}, false},
	{"tables show", []string{"tools.arrow"}, false}, {"tables show", []string{"tools.arrow", "--raw"}, false}, {"tables schema", []string{"tools.arrow"}, true}, {"tables count", []string{"tools.arrow"}, true}, {"tables check", []string{"tools.arrow"}, true},
	{"tables query", []string{"SELECT * FROM t", "t=tools.arrow"}, false}, {"tables query", []string{"SELECT " + evilName, "t=tools.arrow"}, false}, {"tables diff", []string{"tools.arrow", "tools.arrow"}, true}, {"tables roundtrip", []string{"tools.arrow"}, true},
	{"tables concat", []string{"tools.arrow", "tools.arrow", "--out", "both.arrow"}, true}, {"tables migrate", []string{evilName + ".md", "--out", "x.arrow"}, false}, {"tables show", []string{evilName}, false},
	{"tables pick", []string{"tools.arrow", "--where", "name != ''", "--out", "picked.arrow"}, true}, {"tables pick", []string{"tools.arrow", "--where", evilName, "--out", "x.arrow"}, false}, {"tables convert", []string{"tools.arrow", "--out", "-", "--to", "csv"}, true}, {"tables convert", []string{evilName + ".csv", "--out", "x.arrow"}, false},
	{"workflows list", nil, false}, {"workflows nodes", []string{"w.yaml"}, true}, {"workflows graph", []string{"w.yaml"}, true}, {"workflows validate", []string{"wrong.yaml"}, false}, {"workflows run", []string{"w.yaml"}, false},
	{"workflows pack", []string{"w.yaml", "--out", "w.zip"}, true}, {"workflows unpack", []string{evilName + ".md", "--out", "unpacked"}, false},
	{"config show", nil, false}, {"config validate", nil, true}, {"config validate", []string{"-c", "bad.yaml"}, false}, {"config import", []string{"mcp.json"}, false}, {"config export", []string{"--to", "claude"}, false},
	{"trust show", nil, false}, {"trust", nil, false}, {"trust", []string{"--trust"}, false}, {"trust list", nil, false}, {"trust revoke", []string{evil}, false},
	{"servers list", []string{"-c", "bad.yaml"}, false}, {"doctor", nil, false}, {"eval", []string{"eval.yaml"}, false}, {"serve", []string{"-c", "bad.yaml"}, false}, {"chat", []string{"--no-input"}, false},
	{"init", []string{evil}, false}, {"servers add", []string{"new", "--url", "http://127.0.0.1:1/" + evilName}, true}, {"servers add-json", []string{"new", "--force", `{"command":` + evilJSON(evil) + `}`}, true}, {"servers remove", []string{evil}, false},
	{"gateway list", nil, true}, {"gateway clients", nil, false}, {"gateway connect", []string{"cursor", "--print"}, false}, {"gateway connect", []string{evil}, false}, {"gateway disconnect", []string{evil}, false},
	{"proposals list", nil, true}, {"proposals show", []string{evil}, false}, {"proposals accept", []string{evil}, false}, {"proposals reject", []string{evil}, false},
	{"service install", []string{"--manager", "systemd", "--dry-run"}, false}, {"service install", []string{"--manager", "windows"}, false}, {"service install", []string{"--credential", evil}, false}, {"service uninstall", []string{"--name", evil}, false},
	{"service status", []string{"--name", evil}, false}, {"service status", []string{"--manager", "systemd"}, true}, {"service start", []string{"--manager", evil}, false}, {"service stop", []string{"--manager", "systemd"}, false}, {"service logs", []string{"--manager", "systemd"}, false},
	{"store check", nil, false}, {"store backup", []string{evil}, false}, {"store restore", []string{evil}, false}, {"store repair", []string{evil}, false}, {"store compact", nil, true}, {"store copy", []string{"--from", evil, "--to", "sqlite"}, false}, {"upgrade", []string{"--check"}, false},
	{"store show", nil, false}, {"store adopt", nil, false}, {"trust list", nil, true}, {"trust show", nil, false}, {"trust revoke", []string{evil}, false},
	{"tools add", []string{evil, "--server", "s"}, false}, {"tools remove", []string{evil}, false},
	{"sessions delete", []string{evil}, false},
	{"completion bash", nil, true}, {"completion fish", nil, true}, {"completion zsh", nil, true}, {"completion powershell", nil, true}, {"help", []string{evil}, false},
	{evil, nil, false}, {"--" + evil, nil, false}, {"tools", []string{evil}, false}, {"tools list", []string{evil}, false}, {"tools list", []string{"--" + evil}, false}, {"tools list", []string{"-o", evil}, false}, {"tools list", []string{"--log-level", evil}, false},
	{"__complete tools call", []string{"-c", "tenon.yaml", ""}, false}, {"__complete runs show", []string{""}, true}, {"__complete prompts get s", []string{""}, true}, {"__complete sessions show", []string{"-c", "tenon.yaml", ""}, false},
}

// TestEverythingWrittenIsVisible runs every command with a hostile server, model, table and files, in a folder with a
// hostile name. The output must not contain an invisible character.
func TestEverythingWrittenIsVisible(t *testing.T) {
	longtest.Skip(t)
	dir := filepath.Join(t.TempDir(), evilName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"HOME": dir, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "TENON_NO_PROBE": "1", "NO_COLOR": "", "CLICOLOR_FORCE": ""} {
		t.Setenv(k, v)
	}
	t.Chdir(dir)
	evilFiles(t, evilServer(t), evilRegistry(t))
	left := map[string]bool{}
	var leaves func(c *cobra.Command, path string)
	leaves = func(c *cobra.Command, path string) {
		for _, sub := range c.Commands() {
			leaves(sub, strings.TrimSpace(path+" "+sub.Name()))
		}
		if c.Runnable() && !c.HasSubCommands() && path != "testserver" && path != "gateway" && path != "gateway record" { // which speak a protocol
			left[path] = true
		}
	}
	leaves(newRoot(newApp(stdio{strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}}), nil), "")
	for _, w := range walk {
		delete(left, w.verb)
		t.Run("SEC-F15_"+tenon.Visible(w.verb+" "+strings.Join(w.args, " ")), func(t *testing.T) {
			if strings.HasPrefix(w.verb, "__complete") { // does not open the store of an untrusted project
				if out, errs := written(t, []string{"trust", "--trust"}, false); errs != "" {
					t.Fatal(out, errs)
				}
			}
			shown, last := false, ""
			for _, format := range []string{"", "json", "jsonl"} {
				for _, tty := range []bool{false, true} {
					line := append(strings.Fields(w.verb), w.args...)
					if format != "" && !strings.HasPrefix(w.verb, "__complete") {
						line = append([]string{line[0], "-o", format}, line[1:]...)
					}
					if i := slices.Index(line, "-"); i >= 0 {
						line[i] = firstApproval(t)
					}
					if !slices.Contains(w.args, "-c") && !strings.HasPrefix(w.verb, "init") && !strings.HasPrefix(w.verb, "-") && !strings.HasPrefix(w.verb, "__complete") {
						line = append([]string{line[0], "-c", "tenon.yaml"}, line[1:]...)
					}
					out, errs := written(t, line, tty)
					last = out + errs
					shown = shown || strings.Contains(strings.ToLower(out+errs), "202e")
					looksVisible(t, line, "stdout", out, tty)
					looksVisible(t, line, "stderr", errs, tty)
				}
			}
			if !shown && !w.ours {
				t.Errorf("it says nothing of others: the walk does not reach it: %.400q", last)
			}
		})
	}
	if len(left) > 0 {
		t.Errorf("verbs that are not walked: %s", strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
}

// firstApproval returns the id of the oldest waiting approval.
func firstApproval(t *testing.T) string {
	t.Helper()
	out, _ := written(t, []string{"approvals", "list", "-c", "tenon.yaml"}, false)
	id, _, _ := strings.Cut(out, "\t")
	return id
}

// written runs a command line and returns its output.
func written(t *testing.T, line []string, tty bool) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	a := newApp(stdio{strings.NewReader("hello\ncalls\ny\n/quit\n"), &o, &e})
	a.outTTY, a.errTTY, a.checkEvery = tty, tty, 20*time.Millisecond
	a.lookupEnv = func(name string) (string, bool) {
		if name == "CLICOLOR_FORCE" && tty {
			return "1", true
		}
		return os.LookupEnv(name)
	}
	a.main(t.Context(), line)
	return o.String(), e.String()
}

// looksVisible fails if the output contains an invisible character. The escape sequences that tenon itself writes are
// permitted.
func looksVisible(t *testing.T, line []string, stream, text string, tty bool) {
	t.Helper()
	if tty {
		text = strings.ReplaceAll(text, clearLine, "")
		for _, s := range styles {
			text = strings.ReplaceAll(text, "\x1b["+s+"m", "")
		}
	}
	for i, r := range text {
		if r == utf8.RuneError || tenon.IsHidden(r) && r != '\n' && r != '\t' && r != '\r' {
			t.Errorf("%q (terminal %v): %s has %U: %q", line, tty, stream, r, text[max(i-80, 0):min(i+20, len(text))])
			return
		}
	}
}
