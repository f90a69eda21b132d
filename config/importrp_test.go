package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportExtractsKept checks that a token in a value without an equivalent, which is kept under x-aidk, is extracted,
// too.
func TestImportExtractsKept(t *testing.T) {
	const token = "sk-live-0123456789abcdef"
	for name, text := range map[string]string{
		"RP-16_custom": `[{"serverName": "a", "transport": "http", "url": "https://h/mcp", "auth": {"type": "custom", "token": "` +
			token + `"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Import(Source{Label: "aidk.json", Kind: "aidk", Data: []byte(text), Extract: true})
			if err != nil {
				t.Fatal(err)
			}
			if yaml := string(got.YAML()); strings.Contains(yaml, token) || !strings.Contains(yaml, "x-aidk") {
				t.Errorf("%s", yaml)
			}
			if len(got.Export) != 1 || !strings.Contains(got.Export[0], token) {
				t.Errorf("%q", got.Export)
			}
		})
	}
}

// TestImportOfResearchAIFolder checks the working folders of an imported config/mcp.json: ResearchAI starts its servers
// in the folder above.
func TestImportOfResearchAIFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"RP-1_module":   `"command": "python3", "args": ["-m", "weathermod"]`,
		"RP-1_relative": `"command": "node", "args": ["./server.js"]`,
		"RP-1_absolute": `"command": "/nonexistent/x"`,
	} {
		for _, in := range []string{"config", "."} {
			t.Run(name+"_"+in, func(t *testing.T) {
				path := filepath.Join(dir, in, "mcp.json")
				text := `{"servers": [{"id": "w", "transport": "stdio", ` + command + `}]}`
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := Import(Source{Label: path, Path: path, Data: []byte(text)})
				if err != nil {
					t.Fatal(err)
				}
				got.Changes(dir, true)
				if yaml := string(got.YAML()); strings.Contains(yaml, "cwd") {
					t.Errorf("%s", yaml)
				}
			})
		}
	}
}
