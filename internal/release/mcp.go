package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// mcpName is the name of tenon gateway in the registry of MCP servers. The registry checks that the same name is in
// mcpName of the npm package and in the line mcp-name of the wheel's description, as a proof of ownership.
const mcpName = "io.github.tenonhq/tenon"

// maxRegistryText bounds the description in server.json, in characters.
const maxRegistryText = 100

const gatewaySummary = "One MCP server for the tools of many: filtered, renamed, under rules, with approvals"

// writeMCP writes a bundle for each platform, which Claude Desktop and others install with one click
// (https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md), and server.json for the registry of MCP servers
// (schema 2025-12-11). server.json names the packages of npm and PyPI and the bundles with their checksums.
func writeMCP(p packaging) error {
	version, err := plainVersion(p.version)
	if err != nil {
		return err
	}
	python, err := pythonVersion(p.version)
	if err != nil {
		return err
	}
	found, err := p.binaries()
	if err != nil {
		return err
	}
	packages := []any{registryPackage("npm", "tenon", version), registryPackage("pypi", wheelName, python)}
	for _, pl := range platforms {
		binary, ok := found[pl]
		if !ok {
			continue
		}
		bundle, err := p.bundle(version, pl, binary)
		if err != nil {
			return err
		}
		file := "tenon_" + version + "_" + pl.String() + ".mcpb"
		if err := writeFile(filepath.Join(p.to, file), bundle); err != nil {
			return err
		}
		sum := sha256.Sum256(bundle)
		packages = append(packages, map[string]any{"registryType": "mcpb", "version": version,
			"identifier": homepage + "/releases/download/v" + version + "/" + file,
			"fileSha256": hex.EncodeToString(sum[:]), "transport": map[string]string{"type": "stdio"}})
	}
	return writeJSON(filepath.Join(p.to, "server.json"), map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    mcpName, "title": "tenon gateway", "description": gatewaySummary, "version": version,
		"websiteUrl": homepage, "repository": map[string]string{"url": homepage, "source": "github"},
		"packages": packages})
}

// registryPackage describes a package that is started as tenon gateway --config FILE.
func registryPackage(kind, name, version string) any {
	return map[string]any{"registryType": kind, "identifier": name, "version": version,
		"transport": map[string]string{"type": "stdio"},
		"packageArguments": []any{
			map[string]any{"type": "positional", "value": "gateway"},
			map[string]any{"type": "named", "name": "--config", "format": "filepath", "isRequired": true,
				"description": "Configuration with the servers and the rules: tenon.yaml, which tenon init writes"},
		}}
}

// bundle packs the binary of a platform with its manifest. Each platform has a separate bundle, because one file with
// six binaries would be six times as large.
func (p packaging) bundle(version string, pl platform, binary []byte) ([]byte, error) {
	program := "server/" + pl.binary()
	manifest, err := json.MarshalIndent(map[string]any{
		"manifest_version": "0.3", "name": "tenon", "display_name": "tenon gateway", "version": version,
		"description": gatewaySummary, "author": map[string]string{"name": "The tenon authors", "url": homepage},
		"homepage": homepage, "repository": map[string]string{"type": "git", "url": homepage}, "license": licence,
		"keywords": []string{"mcp", "gateway"}, "tools_generated": true, "prompts_generated": true,
		"server": map[string]any{"type": "binary", "entry_point": program, "mcp_config": map[string]any{
			"command": "${__dirname}/" + program,
			"args":    []string{"gateway", "--config", "${user_config.config}"}, "env": map[string]string{}}},
		"user_config": map[string]any{"config": map[string]any{"type": "file", "title": "Configuration",
			"required": true, "description": "tenon.yaml with your servers and rules; 'tenon init' writes one"}},
		"compatibility": map[string]any{"platforms": []string{npmNames[pl.os]}},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	entries := []entry{{"manifest.json", append(manifest, '\n'), 0o644}, {program, binary, 0o755}}
	return p.zipped(append(entries, p.licences...))
}

// writeJSON writes a value as indented JSON. The keys of maps are sorted.
func writeJSON(path string, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return writeFile(path, []byte(b.String()))
}

// sorted sorts entries by their names.
func sorted(entries []entry) []entry {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries
}
