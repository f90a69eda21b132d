package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// unpacked unpacks a zip archive into a new folder and keeps the file modes.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := writeFile(to, text); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(to, f.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// manifest is the part of a bundle's manifest with which a client starts the server.
type manifest struct {
	Version string
	Server  struct {
		Entry  string `json:"entry_point"`
		Config struct {
			Command string
			Args    []string
		} `json:"mcp_config"`
	}
	User          map[string]struct{ Type string } `json:"user_config"`
	Compatibility struct{ Platforms []string }
}

// bundleCommand returns the command with which a client starts an unpacked bundle.
func bundleCommand(t *testing.T, dir, config string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.User["config"].Type != "file" || len(m.Compatibility.Platforms) != 1 {
		t.Errorf("user_config %v, platforms %v", m.User, m.Compatibility.Platforms)
	}
	if m.Server.Config.Command != "${__dirname}/"+m.Server.Entry {
		t.Errorf("command %s, entry point %s", m.Server.Config.Command, m.Server.Entry)
	}
	words := append([]string{m.Server.Config.Command}, m.Server.Config.Args...)
	for i := range words {
		words[i] = strings.NewReplacer("${__dirname}", dir, "${user_config.config}", config).Replace(words[i])
	}
	return words
}

// TestREL_mcpb unpacks this platform's MCP bundle and runs the command of its manifest.
func TestREL_mcpb(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	p := packaging{version: "1.2.3", dist: fakeDist(t), to: t.TempDir()}
	if err := writeMCP(p); err != nil {
		t.Fatal(err)
	}
	dir := unpacked(t, filepath.Join(p.to, "tenon_1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH+".mcpb"))
	words := bundleCommand(t, dir, "/x/tenon.yaml")
	out, _ := execOutput(words)
	if want := "binary: gateway --config /x/tenon.yaml\n"; out != want {
		t.Errorf("it printed %q, want %q", out, want)
	}
}

// TestREL_serverJSON checks server.json as the MCP registry does: the name is the same as in the packages, versions are
// exact, texts have at most 100 characters, and each bundle has a checksum.
func TestREL_serverJSON(t *testing.T) {
	p := packaging{version: "v1.2.3-rc.1", dist: fakeDist(t), to: t.TempDir()}
	for _, write := range []func(packaging) error{writeMCP, writeNPM, writeWheels} {
		if err := write(p); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(p.to, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Schema                     string `json:"$schema"`
		Name, Description, Version string
		Packages                   []struct {
			Type    string `json:"registryType"`
			ID      string `json:"identifier"`
			Version string
			Sum     string `json:"fileSha256"`
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(s.Name) || s.Version != "1.2.3-rc.1" ||
		utf8.RuneCountInString(s.Description) > maxRegistryText || !strings.Contains(s.Schema, "/2025-12-11/") {
		t.Errorf("not a description for the registry:\n%s", text)
	}
	bundles := 0
	for _, k := range s.Packages {
		switch {
		case k.Type == "npm" && k.Version != "1.2.3-rc.1", k.Type == "pypi" && k.Version != "1.2.3rc1":
			t.Errorf("%s has the version %s", k.Type, k.Version)
		case k.Type == "pypi" && k.ID != wheelName:
			t.Errorf("PyPI's package is %s", k.ID)
		case k.Type == "mcpb":
			bundles++
			b, err := os.ReadFile(filepath.Join(p.to, path.Base(k.ID)))
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != k.Sum {
				t.Errorf("%s has another checksum", k.ID)
			}
		}
	}
	if bundles != len(platforms) || len(s.Packages) != bundles+2 {
		t.Errorf("%d bundles, %d packages", bundles, len(s.Packages))
	}
	npm := command(t, p.to, "tar", "-xzOf", "tenon-1.2.3-rc.1.tgz", "package/package.json")
	var about struct{ McpName string }
	if err := json.Unmarshal([]byte(npm), &about); err != nil || about.McpName != s.Name {
		t.Errorf("mcpName of npm is %q, want %q (%v)", about.McpName, s.Name, err)
	}
	wheel := unpacked(t, the(t, p.to, "tenon_mcp-1.2.3rc1-py3-none-win_amd64.whl"))
	meta, err := os.ReadFile(filepath.Join(wheel, "tenon_mcp-1.2.3rc1.dist-info", "METADATA"))
	if err != nil || !strings.Contains(string(meta), "\nmcp-name: "+s.Name+"\n") {
		t.Errorf("the wheel does not prove its owner (%v):\n%s", err, meta)
	}
}
