package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// loadText loads a text as tenon.yaml, or as another program's file of the given name.
func loadText(t *testing.T, name, text string, environ ...string) *Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(t.Context(), Options{File: file, NoUser: true, Home: t.TempDir(), LookupEnv: env(environ...)})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

// dollarFiles are files of other programs with dollar signs that do not begin a variable, and the values that they must
// result in.
var dollarFiles = []struct {
	kind, name, text string
	want             []string // values of the server a
}{
	{compat.Claude, ".mcp.json", `{"mcpServers":{"a":{"command":"x$$y","args":["$$","a$b$","${A}$$","${A:-d$$d}","${"],
		"env":{"E":"p$$w$$$d"}}}}`,
		[]string{"x$$y", "$$", "a$b$", "va$$", "va", "${", "p$$w$$$d"}},
	{compat.VSCode, "mcp.json", `{"servers":{"a":{"type":"stdio","command":"x$$y","args":["${env:A}$$"],"env":{"E":"$${env:A}"}}}}`,
		[]string{"x$$y", "va$$", "$va"}},
	{compat.HoloDeck, "agent.yaml", `{name: n, model: {provider: ollama, name: m}, instructions: {inline: "i$$"}, tools: [
		{type: mcp, name: a, description: "d$$", command: npx, args: ["$$x", "${A}"], env: {E: "e$$"}, config: {k: ["c$$", {z: "${"}]}}]}`,
		[]string{"npx", "$$x", "va", "e$$", `["c$$",{"z":"${"}]`}},
	{compat.AIDK, "aidk.json", `[{"serverName":"a","transport":"websocket","connection":{"url":"https://x/?a=$$b${A}"},
		"auth":{"type":"bearer","token":"t$$k"}}]`, []string{"https://x/?a=$$bva", "Bearer t$$k"}},
	{compat.ResearchAI, "r.json", `{"servers":[{"id":"a","name":"N$$","transport":"sse","url":"https://x/$$${A}","headers":{"X":"h$$${"}}]}`,
		[]string{"https://x/$$va", "h$$${"}},
	{compat.TrustGraph, "t.json", `{"mcp":{"a":{"url":"http://127.0.0.1:9912/mcp?z=a$$b&q=${a-b}","auth-token":"t$$k${}${secret:A}"}}}`,
		[]string{"http://127.0.0.1:9912/mcp?z=a$$b&q=${a-b}", "Bearer t$$k${}${secret:A}"}},
	{compat.TrustGraph, "t.json", `{"mcp":{"a":{"url":"http://127.0.0.1/${A}/$${A}","auth-token":"x${A}"}}}`, // an export of ours
		[]string{"http://127.0.0.1/va/$va", "Bearer xva"}},
}

// TestDollars checks that dollar signs in other programs' files reach servers unchanged, and that an export contains
// them unchanged.
func TestDollars(t *testing.T) {
	for _, tt := range dollarFiles {
		t.Run("RP-17_"+tt.kind, func(t *testing.T) {
			in, err := Import(Source{Label: tt.name, Data: []byte(tt.text), Kind: tt.kind, Home: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			made := string(in.YAML())
			c := loadText(t, "tenon.yaml", made, "A", "va")
			if diff := cmp.Diff(tt.want, valuesOf(c)); diff != "" {
				t.Errorf("%s\n%s", diff, made)
			}
			back, _, err := c.Export(tt.kind)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Import(Source{Label: tt.name, Data: back, Kind: tt.kind, Home: t.TempDir()})
			if err != nil {
				t.Fatalf("%v\n%s", err, back)
			}
			if diff := cmp.Diff(tt.want, valuesOf(loadText(t, "tenon.yaml", string(again.YAML()), "A", "va"))); diff != "" {
				t.Errorf("after an export: %s\n%s", diff, back)
			}
			if tt.kind == compat.Claude || tt.kind == compat.VSCode || tt.kind == compat.HoloDeck { // forms that are loaded
				if diff := cmp.Diff(tt.want, valuesOf(loadText(t, tt.name, tt.text, "A", "va"))); diff != "" {
					t.Errorf("loaded: %s", diff)
				}
			}
		})
	}
}

// valuesOf returns the values of the server a that are used for a process or an address.
func valuesOf(c *Config) []string {
	s := c.Servers["a"]
	list := append([]string{s.Command}, s.Args...)
	list = append(list, s.URL)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, v := range m {
			list = append(list, v)
		}
	}
	for _, v := range s.Settings {
		list = append(list, string(v))
	}
	var out []string
	for _, v := range list {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

// TestDollarsOfTools checks that dollar signs do not change in the texts of tools, where tenon does not replace
// variables.
func TestDollarsOfTools(t *testing.T) {
	const file = `{"mcp":{"rem$$x":{"url":"https://a.example/"}},"prompt":{"template.p":"{\"prompt\":\"$$ ${X} {{q}}\"}"},
		"tool":{"echo":{"type":"mcp-tool","name":"echo","description":"Costs ${USD} $$5","mcp-tool":"rem$$x","group":["g$$"],
		"applicable-states":["s$$"],"state":"n$$","arguments":[{"name":"p$$q","type":"string","description":"e.g. ${HOME} or $$5"}]},
		"pt":{"type":"prompt","name":"pt","description":"P","template":"p","arguments":[{"name":"q","type":"string","description":"d"}]}}}`
	in, err := Import(Source{Label: "t.json", Data: []byte(file), Kind: compat.TrustGraph, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c := loadText(t, "tenon.yaml", string(in.YAML()))
	tool := c.Tools["echo"]
	got := []string{c.Servers["rem--x"].Title, tool.RemoteName, tool.Description, tool.Groups[0], tool.States[0], tool.NextState,
		tool.Arguments[0].Name, tool.Arguments[0].Description, c.Tools["pt"].Template}
	want := []string{"rem$$x", "rem$$x", "Costs ${USD} $$5", "g$$", "s$$", "n$$", "p$$q", "e.g. ${HOME} or $$5",
		`$$ ${X} {{ has(args.q) ? args.q : "" }}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("RP-17: %s", diff)
	}

	t.Run("RP-17_export_of_a_native_entry", func(t *testing.T) {
		c := loadText(t, "tenon.yaml", `{servers: {s: {url: "https://a.example/?a=$$$$b$$c", load_tools: false}},
			tools: {t: {server: s, remote_name: "r$$", description: "costs $$5 and ${X}"}}}`)
		out, lost, err := c.Export(compat.TrustGraph)
		if err != nil || len(lost) > 0 {
			t.Fatalf("%v, not exported: %v", err, lost)
		}
		for _, want := range []string{`"costs $$5 and ${X}"`, `"remote-name": "r$$"`, `"https://a.example/?a=$$b$c"`} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %s in\n%s", want, out)
			}
		}
	})
	t.Run("RP-17_export_of_what_the_other_program_expands", func(t *testing.T) {
		c := loadText(t, "tenon.yaml", `{servers: {s: {command: x, args: ["$${HOME}"]}}}`)
		_, lost, err := c.Export(compat.Claude)
		if err != nil || len(lost) != 1 || !strings.Contains(lost[0].Error(), "servers.s.args[0]") {
			t.Errorf("%v, not exported: %v", err, lost)
		}
	})
	t.Run("RP-17_extracted", func(t *testing.T) {
		in, err := Import(Source{Label: "t.json", Kind: compat.TrustGraph, Home: t.TempDir(), Extract: true,
			Data: []byte(`{"mcp":{"a":{"url":"https://a.example/","auth-token":"t$$k"}}}`)})
		if err != nil || in.Extracted["A_TOKEN"] != "t$$k" {
			t.Errorf("%v, %v", err, in.Extracted)
		}
	})
	t.Run("RP-17_one_server", func(t *testing.T) {
		change, err := FromJSON("a", []byte(`{"command":"x","args":["$$"]}`))
		if err != nil || asJSONLine(change.node) != `{"command":"x","args":["$$$"]}` {
			t.Errorf("%v, %s", err, change.node.JSON())
		}
	})
}

func asJSONLine(n *tree.Node) string {
	return strings.NewReplacer("\n", "", " ", "").Replace(string(n.JSON()))
}

// FuzzDollars checks that a quoted text results in the original text, and that an export removes the quotes again.
func FuzzDollars(f *testing.F) {
	for _, s := range []string{"", "$", "$$", "$$$", "${", "${}", "${A}", "$${A}", "${A:-$$}", "${A:-${B}}", "a$b$$c${"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := quoteDollars(s, namedVariable())
		if back, _ := unquoteDollars(quoted); back != s {
			t.Errorf("%q is %q, then %q", s, quoted, back)
		}
		vars := &tree.Variables{Lookup: func(name string) (string, bool) { return "", false }, Lax: true}
		sk := &tree.Sink{}
		vars.Expand(quoted, &tree.Node{Src: &tree.Source{}}, "", sk)
		if len(sk.Errs) > 0 {
			t.Errorf("%q: %v", quoted, sk.Errs)
		}
		if strings.Contains(s, "${") {
			return
		}
		if got := vars.Expand(quoted, &tree.Node{Src: &tree.Source{}}, "", sk); got != s {
			t.Errorf("%q is %q, which means %q", s, quoted, got)
		}
	})
}
