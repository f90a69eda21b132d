package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/table"
)

// ToolTable is one entry of `tool_tables`. The comments on the fields are the user's
// documentation.
type ToolTable struct {
	// Arrow table of tools, as a file or a stream, or a bundle (`.tooltable`). An entry may also be just a path.
	Path string `yaml:"path" short:"true"`
	// Column with the tools.
	Column string `yaml:"column" default:"last tool column"`
}

// takenTable records what was added from a table.
type takenTable struct {
	digest string
	took   map[table.Kind]int
}

// toolTables reads the tables of tool_tables.
func (k *checker) toolTables(ctx context.Context) {
	if k.apart || k.c.tabled || len(k.c.ToolTables) == 0 {
		return
	}
	k.c.tabled = true
	t := newTableTools(k.c, nil)
	t.beside()
	var told []string // notes about the deprecated type: one for each file
	k.c.taken = make([]takenTable, len(k.c.ToolTables))
	for i, entry := range k.c.ToolTables {
		p := tree.Index("tool_tables", i)
		switch {
		case k.failedUnder(p):
			continue
		case entry.Path == "":
			k.bad(p, "write the path of a table, or {path: FILE, column: NAME}", "'path' is required")
			continue
		case slices.Contains(k.c.ToolTables[:i], entry):
			k.bad(p, "remove it", "the table is listed twice")
			continue
		}
		o := table.Options{Legacy: k.c.Tables.WithDefaults().Legacy.Read, Seen: k.seen, Warn: func(text string) {
			if !slices.Contains(told, entry.Path) {
				told = append(told, entry.Path)
				k.note(p, "", "%s", text)
			}
		}}
		var notes []string
		t.at, t.note = k.where(p),
			func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
		err := isTable(entry.Path)
		if err == nil {
			err = t.take(ctx, entry.Path, entry.Column, o)
		}
		if err != nil {
			k.bad(p, remedy(entry.Path, err), "%s", naming(entry.Path, err))
			continue
		}
		k.c.taken[i] = takenTable{digest: t.digest(), took: t.took}
		if n := len(notes) - 1; n > 0 {
			notes[0] += fmt.Sprintf("; and %s about this table", counted(n, "more warning"))
		}
		if len(notes) > 0 {
			k.note(p, "", "%s", notes[0])
		}
	}
	if len(t.entries) > 0 && k.c.Tools == nil {
		k.c.Tools = t.entries
	} else {
		maps.Copy(k.c.Tools, t.entries)
	}
	k.c.flows = t.flows
}

// seen records a file from which a table was read.
func (k *checker) seen(path, digest string, size int64) error {
	k.c.tableReads = append(k.c.tableReads, path)
	return k.c.files.note(path, fileSum{digest: digest, size: size})
}

// isTable returns an error if the path is no regular file. Opening a pipe could block forever.
func isTable(path string) error {
	switch st, err := os.Stat(path); {
	case err != nil:
		return errors.New(reason(err))
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	}
	return nil
}

// naming returns the text of an error, prefixed with the table's path unless the text contains it.
func naming(path string, err error) string {
	if text := err.Error(); strings.Contains(text, path) {
		return text
	}
	return path + ": " + err.Error()
}

// remedy returns a hint for a table that cannot be used.
func remedy(path string, err error) string {
	if tenon.ErrorCode(err) != tenon.CodeInvalid || strings.Contains(err.Error(), "tenon tables migrate") {
		return ""
	}
	return "tenon tables check " + path + " says all that is wrong with it"
}

// WithTables returns the configuration with the tools of its ToolTables. After [Load], c already contains them and is
// returned; for a Config that a Go program made, WithTables returns a copy. The error has code config.
func (c *Config) WithTables(ctx context.Context) (*Config, error) {
	if c.tabled || len(c.ToolTables) == 0 {
		return c, nil
	}
	out := *c
	out.Servers, out.Tools, out.secrets, out.added = maps.Clone(c.Servers), maps.Clone(c.Tools),
		maps.Clone(c.secrets), maps.Clone(c.added)
	out.tables = maps.Clone(c.tables)
	s := &tree.Sink{}
	d := &decoder{Sink: s, nodes: map[string]*tree.Node{}, keyed: map[string]*tree.Node{}}
	(&checker{decoder: d, c: &out, root: &tree.Node{Src: &tree.Source{Label: "config", Dir: c.Dir}}}).toolTables(ctx)
	if len(s.Errs) > 0 {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s: %s", s.Errs[0].Path, s.Errs[0].Message)
	}
	out.Warnings = append(slices.Clip(out.Warnings), s.Warns...)
	return &out, nil
}

// TableWorkflows returns the workflows that came from tables, by tool name.
func (c *Config) TableWorkflows() map[string]TableWorkflow { return c.flows }

// HasTableWorkflow reports whether a table has a workflow with this name.
func (c *Config) HasTableWorkflow(name string) bool { _, ok := c.flows[name]; return ok }

// DropTables removes the tables of ToolTables and their workflows, for callers that call a single tool. The servers
// and tools of the tables remain in Servers and Tools.
func (c *Config) DropTables() { c.ToolTables, c.flows = nil, nil }

// FromTable reports whether the server or tool at a path ("servers.NAME") came from a table of ToolTables.
func (c *Config) FromTable(path string) bool { return c.rows[path] != nil }

// TableCommands returns the commands of servers that came from tables, with their arguments, by server name.
func (c *Config) TableCommands() map[string][]string {
	found := map[string][]string{}
	for name := range c.tables {
		if s, ok := c.Servers[name]; ok && s.Command != "" {
			found[name] = append([]string{s.Command}, s.Args...)
		}
	}
	return found
}

// TableSecrets returns the named secrets that servers from tables use, by server name. It leaves out a configured
// server that a row names or whose target it has, because that server uses its own credential.
func (c *Config) TableSecrets() map[string]string {
	found := map[string]string{}
	for name := range c.tables {
		if s, ok := c.Servers[name]; ok && s.Command == "" {
			if secret := c.SecretName("servers." + name + ".auth.secret"); secret != "" {
				found[name] = secret
			}
		}
	}
	return found
}

// TableOf returns the path of the table that defines a server, or "" if none does.
func (c *Config) TableOf(server string) string { return c.tables[server] }

// TableDigest returns a digest of the rows and workflows of the table of ToolTables[i].
func (c *Config) TableDigest(i int) string { return c.taken[i].digest }

// TableBrings describes what the table of ToolTables[i] has added, such as "2 tools of servers, 1 workflow".
func (c *Config) TableBrings(i int) string {
	names := map[table.Kind]string{table.MCP: "tool", table.Workflow: "workflow", table.HTTP: "request",
		table.Prompt: "prompt", table.Agent: "agent"}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(c.taken[i].took)) {
		text := counted(c.taken[i].took[kind], names[kind])
		if kind == table.MCP {
			text += " of servers"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "no tools"
	}
	return strings.Join(parts, ", ")
}

// rowNode returns, for a value that came from a table, the place where the file names the table. It returns nil for
// other values.
func (c *Config) rowNode(path string) *tree.Node {
	if n := c.rows[path]; n != nil || len(c.rows) == 0 {
		return n
	}
	for at := len(path); ; {
		if at = strings.LastIndexByte(path[:at], '.'); at < 0 {
			return nil
		}
		if n := c.rows[path[:at]]; n != nil {
			key, _, _ := strings.Cut(path[at+1:], ".")
			key, _, _ = strings.Cut(key, "[")
			if rowKeys[key] {
				return n
			}
			return nil
		}
	}
}

// rowKeys are the keys of servers and tools that rows of a table can set.
var rowKeys = map[string]bool{"title": true, "command": true, "args": true, "url": true, "transport": true,
	"auth": true, "trusted": true, "load_tools": true,
	"kind": true, "server": true, "remote_name": true, "description": true, "schema": true, "arguments_mode": true,
	"request": true, "template": true, "model": true,
	"agent": true, "annotations": true}
