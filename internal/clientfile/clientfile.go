// Package clientfile changes the configuration files of MCP clients, so that they start an MCP server: the files of
// Claude Code, Claude Desktop, Cursor, VS Code, Codex, Gemini CLI, Zed and goose. It is what tenon gateway connect and
// disconnect use.
//
//	[Find] ─► the place of a client's file ─► its text with the entry, or without it
//
// Each of these files belongs to another program and to the person who wrote it. So an edit works on the text: it
// changes the one entry, and every other byte, comments included, stays as it is. A file in which the place of the
// entry cannot be found for certain is refused, with the entry to write by hand.
//
// The functions are pure. They know the places of the files and read no file themselves.
package clientfile

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Entry is a server that a client starts.
type Entry struct {
	Name    string
	Command string // an absolute path
	Args    []string
}

// Client is an MCP client with a configuration file.
type Client struct {
	Name  string // as on the command line
	Title string // as people call it
	// section is the key of the object that contains the servers, and format the file format: json, toml or yaml.
	section, format string
	extra           []string // further members of an entry in JSON: name, value
	place           func(w where) string
}

// where contains the facts that determine the paths of a user's files.
type where struct {
	home string
	env  func(string) (string, bool)
	goos string
}

// get returns the folder in an environment variable, if it is absolute. Otherwise it returns a path below the home
// folder.
func (w where) get(name string, below ...string) string {
	if v, ok := w.env(name); ok && name != "" && filepath.IsAbs(v) {
		return v
	}
	return filepath.Join(append([]string{w.home}, below...)...)
}

// support returns the folder for the settings of applications.
func (w where) support() string {
	switch w.goos {
	case "windows":
		return w.get("APPDATA", "AppData", "Roaming")
	case "darwin":
		return filepath.Join(w.home, "Library", "Application Support")
	}
	return w.config()
}

func (w where) config() string { return w.get("XDG_CONFIG_HOME", ".config") }

const (
	formatJSON = "json"
	formatTOML = "toml"
	formatYAML = "yaml"
)

// clients lists the supported clients. The paths are the user's files, not files of a project.
var clients = []Client{
	{"claude", "Claude Code", "mcpServers", formatJSON, []string{"type", "stdio"},
		func(w where) string { return filepath.Join(w.get("CLAUDE_CONFIG_DIR"), ".claude.json") }},
	{"claude-desktop", "Claude Desktop", "mcpServers", formatJSON, nil,
		func(w where) string { return filepath.Join(w.support(), "Claude", "claude_desktop_config.json") }},
	{"cursor", "Cursor", "mcpServers", formatJSON, nil,
		func(w where) string { return filepath.Join(w.home, ".cursor", "mcp.json") }},
	{"vscode", "VS Code", "servers", formatJSON, []string{"type", "stdio"},
		func(w where) string { return filepath.Join(w.support(), "Code", "User", "mcp.json") }},
	{"codex", "Codex", "mcp_servers", formatTOML, nil,
		func(w where) string { return filepath.Join(w.get("CODEX_HOME", ".codex"), "config.toml") }},
	{"gemini", "Gemini CLI", "mcpServers", formatJSON, nil,
		func(w where) string { return filepath.Join(w.home, ".gemini", "settings.json") }},
	{"zed", "Zed", "context_servers", formatJSON, []string{"source", "custom"}, func(w where) string {
		if w.goos == "windows" {
			return filepath.Join(w.support(), "Zed", "settings.json")
		}
		return filepath.Join(w.config(), "zed", "settings.json")
	}},
	{"goose", "goose", "extensions", formatYAML, nil, func(w where) string {
		if w.goos == "windows" {
			return filepath.Join(w.support(), "Block", "goose", "config", "config.yaml")
		}
		return filepath.Join(w.config(), "goose", "config.yaml")
	}},
}

// Names returns the names of the clients.
func Names() []string {
	var names []string
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return names
}

// Find returns a client by its name.
func Find(name string) (Client, bool) {
	i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return clients[i], true
}

// Path returns the path of the user's file of the client. home is the home folder, and env looks up environment
// variables.
func (c Client) Path(home string, env func(string) (string, bool)) string {
	return c.pathOn(runtime.GOOS, home, env)
}

func (c Client) pathOn(goos, home string, env func(string) (string, bool)) string {
	return c.place(where{home: home, env: env, goos: goos})
}

// Put returns the text of a file with an entry. It replaces an entry of the same name. If text is empty, the file is
// new. Errors: invalid (it is not certain how to change the text).
func (c Client) Put(text string, e Entry) (string, error) {
	switch c.format {
	case formatTOML:
		return c.putTOML(text, e)
	case formatYAML:
		return c.putYAML(text, e)
	}
	return c.putJSON(text, e)
}

// Drop returns the text of a file without an entry. If there is no such entry, it returns text unchanged. Errors: as
// for Put.
func (c Client) Drop(text, name string) (string, error) {
	switch c.format {
	case formatTOML:
		return c.dropTOML(text, name)
	case formatYAML:
		return c.dropYAML(text, name)
	}
	return c.dropJSON(text, name)
}

// Show returns the text of a new file with only the entry.
func (c Client) Show(e Entry) string {
	text, err := c.Put("", e)
	if err != nil {
		return ""
	}
	return text
}

// unclear returns the error for a file for which it is not certain how to change it.
func (c Client) unclear(why string) error {
	return tenon.Errorf(tenon.CodeInvalid, "the file of %s cannot be changed: %s; write the entry yourself, as "+
		"--print shows it", c.Title, why)
}

// quoted returns a text in quotes that is valid in JSON, TOML and YAML.
func quoted(s string) string { return string(rawjson.AppendString(nil, s)) }

// list returns texts in brackets. The result is valid in JSON, TOML and YAML.
func list(texts []string) string {
	var all []string
	for _, s := range texts {
		all = append(all, quoted(s))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
