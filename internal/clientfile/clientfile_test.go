package clientfile

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var entry = Entry{Name: "tenon", Command: `/opt/to "nice"/tenon`, Args: []string{"gateway", "--config", "/home/me/a b/tenon.yaml"}}

const (
	jsonArgs = `["gateway", "--config", "/home/me/a b/tenon.yaml"]`
	jsonCmd  = `"/opt/to \"nice\"/tenon"`
	cursorIs = "    \"tenon\": {\n      \"command\": " + jsonCmd + ",\n      \"args\": " + jsonArgs + "\n    }"
	codexIs  = "[mcp_servers.tenon]\ncommand = " + jsonCmd + "\nargs = " + jsonArgs + "\n"
	gooseIs  = "  tenon:\n    enabled: true\n    type: stdio\n    name: \"tenon\"\n    cmd: " + jsonCmd + "\n    args: " + jsonArgs + "\n    timeout: 300\n"
)

// TestPutAndDrop checks that an edit changes only the entry of tenon in a client's file, and that the edit can be
// undone.
func TestPutAndDrop(t *testing.T) {
	for name, tt := range map[string]struct{ client, before, after, back string }{
		"a new file":           {"cursor", "", "{\n  \"mcpServers\": {\n" + cursorIs + "\n  }\n}\n", "{\n  \"mcpServers\": {}\n}\n"},
		"an empty object":      {"cursor", "{}", "{\n  \"mcpServers\": {\n" + cursorIs + "\n  }\n}", "{\n  \"mcpServers\": {}\n}"},
		"other keys":           {"cursor", "{\"a\": 1.0}\n", "{\"a\": 1.0,\n  \"mcpServers\": {\n" + cursorIs + "\n  }}\n", "{\"a\": 1.0,\n  \"mcpServers\": {}}\n"},
		"other servers":        {"cursor", "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"x\": {},\n" + cursorIs + "\n  }\n}\n", ""},
		"comments":             {"zed", "// mine\n{\n  \"context_servers\": {\n    \"x\": {}, // theirs\n  }, /* end */\n}\n", "// mine\n{\n  \"context_servers\": {\n    \"x\": {},\n" + strings.Replace(cursorIs, "      \"command\"", "      \"source\": \"custom\",\n      \"command\"", 1) + ", // theirs\n  }, /* end */\n}\n", ""},
		"an older entry":       {"cursor", "{\"mcpServers\": {\"tenon\": {\"command\": \"old\"}, \"x\": 1}}", "{\"mcpServers\": {\"tenon\": " + strings.TrimPrefix(cursorIs, "    \"tenon\": ") + ", \"x\": 1}}", "{\"mcpServers\": {\"x\": 1}}"},
		"a new TOML file":      {"codex", "", codexIs, "\n"},
		"other tables":         {"codex", "model = \"x\" # mine\n\n[mcp_servers.x]\ncommand = \"x\"\n", "model = \"x\" # mine\n\n[mcp_servers.x]\ncommand = \"x\"\n\n" + codexIs, ""},
		"an older table":       {"codex", "[mcp_servers.tenon]\ncommand = \"old\"\n[mcp_servers.tenon.env]\nA = \"b\"\n[z]\n", "[z]\n\n" + codexIs, "[z]\n\n"},
		"a new YAML file":      {"goose", "", "extensions:\n" + gooseIs, "extensions:\n"},
		"other extensions":     {"goose", "GOOSE_MODE: auto\nextensions:\n  x:\n    cmd: x\nlast: 1\n", "GOOSE_MODE: auto\nextensions:\n" + gooseIs + "  x:\n    cmd: x\nlast: 1\n", ""},
		"an older extension":   {"goose", "extensions:\n  tenon:\n    cmd: old\n  x:\n    cmd: x\n", "extensions:\n" + gooseIs + "  x:\n    cmd: x\n", "extensions:\n  x:\n    cmd: x\n"},
		"extensions in braces": {"goose", "extensions: {}\n", "extensions:\n" + gooseIs, "extensions:\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c, ok := Find(tt.client)
			if !ok {
				t.Fatal("no such client")
			}
			got, err := c.Put(tt.before, entry)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.after, got); d != "" {
				t.Errorf("put: %s", d)
			}
			if again, err := c.Put(got, entry); err != nil || again != got {
				t.Errorf("put again: %v\n%s", err, cmp.Diff(got, again))
			}
			back, err := c.Drop(got, entry.Name)
			want := tt.back
			if want == "" {
				want = tt.before
			}
			if d := cmp.Diff(strings.TrimRight(want, "\n"), strings.TrimRight(back, "\n")); err != nil || d != "" && name != "comments" {
				t.Errorf("drop: %v %s", err, d)
			}
			if strings.Contains(back, "tenon") {
				t.Errorf("drop left the entry: %s", back)
			}
		})
	}
}

// TestRefused checks that a file stays unchanged if the place for the entry is not certain.
func TestRefused(t *testing.T) {
	for client, texts := range map[string][]string{
		"cursor": {"[]", "{", "{} {}", `{"mcpServers": []}`, `{"mcpServers": {}, "mcpServers": {}}`, `{"a": nope}`, strings.Repeat(`{"a":`, 1000)},
		"codex":  {"mcp_servers = {}\n", "[mcp_servers]\ntenon = { command = \"x\" }\n", "a = \"\"\"\n[mcp_servers.tenon]\n\"\"\"\n"},
		"goose":  {"extensions: {x: {cmd: x}}\n", "{extensions: {}}\n", "extensions:\n- x\n"},
	} {
		c, _ := Find(client)
		for _, text := range texts {
			if got, err := c.Put(text, entry); err == nil || !strings.Contains(err.Error(), "--print") {
				t.Errorf("%s: %q became %q, %v", client, text, got, err)
			}
		}
	}
}

// TestPaths checks the paths of the clients' configuration files.
func TestPaths(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"XDG_CONFIG_HOME": "relative"}[name]
		return v, ok
	}
	for client, want := range map[string]string{"claude": ".claude.json", "claude-desktop": ".config/Claude/claude_desktop_config.json", "cursor": ".cursor/mcp.json",
		"vscode": ".config/Code/User/mcp.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json", "zed": ".config/zed/settings.json", "goose": ".config/goose/config.yaml"} {
		c, ok := Find(client)
		if !ok {
			t.Fatal(client)
		}
		if got := filepath.ToSlash(c.pathOn("linux", "/home/me", env)); got != "/home/me/"+want {
			t.Errorf("%s: %s", client, got)
		}
	}
	c, _ := Find("vscode")
	if got := filepath.ToSlash(c.pathOn("darwin", "/Users/me", env)); got != "/Users/me/Library/Application Support/Code/User/mcp.json" {
		t.Error(got)
	}
}

// FuzzJSON edits arbitrary JSON files. The edited file must have the original contents and the new entry.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"{}", `{"mcpServers":{"x":[1,{"a":"\"}"}]}}`, `{"a":1}`, `{"mcpServers":{}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, _ := Find("cursor")
		got, err := c.Put(text, entry)
		var before map[string]any
		if json.Unmarshal([]byte(text), &before) != nil {
			return
		}
		if err != nil {
			return // refused, for example because a key is there twice
		}
		var after map[string]any
		if err := json.Unmarshal([]byte(got), &after); err != nil {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		back, err := c.Drop(got, entry.Name)
		var again map[string]any
		if err != nil || json.Unmarshal([]byte(back), &again) != nil {
			t.Fatalf("%q became %q: %v", got, back, err)
		}
	})
}
