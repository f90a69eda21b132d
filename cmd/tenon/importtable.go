package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

// isTableFile reports whether a file that is to be imported is an Arrow table.
func isTableFile(file string) bool { return isTable(file) || table.IsBundle(file) }

// importTable makes entries of a tool table: each tool of an MCP server one of tools,
// each address with its credential one of servers, each credential one of secrets,
// to be filled in. What has no place in a configuration is told.
// Workflows are returned beside: they become files, which only --write makes.
func (a *app) importTable(ctx context.Context, file string, write bool) (src config.Source, packs []importedPack, err error) {
	src = config.Source{Kind: config.KindKNIME, Label: file}
	if src.Path, err = filepath.Abs(file); err != nil {
		return src, nil, tenon.Errorf(tenon.CodeInvalid, "the path of %s is not known: %w", file, err)
	}
	src.Dir = filepath.Dir(src.Path)
	if write { // what the entries name is made beside the file that they go into
		if src.Dir, err = filepath.Abs(a.importDir()); err != nil {
			return src, nil, tenon.Errorf(tenon.CodeInvalid, "the folder of %s is not known: %w", a.config, err)
		}
	}
	r, err := table.Open(file, a.tableOptions(&config.Config{}))
	if err != nil {
		return src, nil, err
	}
	defer closing(r, &err)
	c, err := r.Column("")
	if err != nil {
		return src, nil, err
	}
	m := &madeOfTable{from: r, remotes: map[string][]string{}, Servers: map[string]map[string]any{}, Tools: map[string]map[string]any{},
		Secrets: map[string]map[string]string{}, known: map[string]string{}, write: write}
	for row, err := range r.Tools(ctx, c) {
		if err != nil {
			return src, nil, err
		}
		left, err := m.add(row)
		if err != nil {
			return src, nil, tenon.Errorf(tenon.ErrorCode(err), "%s: %s: %w", file, row.Place(), err)
		}
		if left != "" {
			a.note("%s: %s: left out: %s", file, row.Place(), left)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Secrets)) {
		a.note("secrets.%s is to be filled in: it is read from the variable %s", name, m.Secrets[name]["env"])
	}
	src.Data, err = encodeJSON(m)
	if err != nil {
		return src, nil, tenon.Errorf(tenon.CodeInternal, "%s: %w", file, err)
	}
	return src, m.packs, nil
}

// madeOfTable is what a tool table comes to.
type madeOfTable struct {
	from    *table.Reader
	names   config.ToolNames
	remotes map[string][]string          // server → its tools that the table has
	Servers map[string]map[string]any    `json:"servers,omitempty"`
	Tools   map[string]map[string]any    `json:"tools,omitempty"`
	Secrets map[string]map[string]string `json:"secrets,omitempty"`

	known map[string]string // address and credential → server
	write bool              // files may be made
	// variables are those that secrets are read from, with their credentials.
	variables map[string]string
	packs     []importedPack
}

// importedPack is a workflow of a table, which becomes a file.
type importedPack struct {
	path string // as it stands in the configuration
	zip  []byte
}

// addWorkflow makes a file of a workflow, and an entry of tools that names it.
func (m *madeOfTable) addWorkflow(t *table.Tool) (left string) {
	if !m.write {
		return "tool '" + t.Name + "' is a workflow: with --write it becomes a file beside tenon.yaml"
	}
	w, err := foreignWorkflow(m.from, t)
	if err == nil {
		var zip []byte
		if zip, err = w.Pack.Zip(); err == nil {
			name := m.names.Make(t.Name)
			path := "workflows/" + name + ".zip"
			m.packs = append(m.packs, importedPack{path, zip})
			m.Tools[name] = map[string]any{"kind": tenon.KindWorkflow, "path": path}
			if t.Description != w.File.Description {
				m.Tools[name]["description"] = t.Description
			}
			return ""
		}
	}
	return "tool '" + t.Name + "': " + err.Error()
}

// MarshalJSON writes the three sections alone.
func (m *madeOfTable) MarshalJSON() ([]byte, error) {
	return encodeJSON(struct {
		Secrets any `json:"secrets,omitempty"`
		Servers any `json:"servers,omitempty"`
		Tools   any `json:"tools,omitempty"`
	}{m.Secrets, m.Servers, m.Tools})
}

// add takes a row; left says why it is not taken.
func (m *madeOfTable) add(row table.ToolRow) (left string, err error) {
	t := row.Tool
	switch {
	case t == nil:
		return "the cell is missing", nil
	case t.Kind == table.Workflow:
		return m.addWorkflow(t), nil
	}
	if err := t.Use(row.Place()); err != nil {
		return "", err
	}
	address, err := t.Address()
	if err != nil {
		return "", err
	}
	schema, err := t.Schema()
	if err != nil {
		return "", err
	}
	if t.Kind.IsOwn() {
		if left := missing(t, address); left != "" {
			return left, nil
		}
		m.Tools[m.names.Make(t.Name)] = config.RowEntry(t, address, schema)
		return "", nil
	}
	if address.Server != "" {
		return "tool '" + t.Name + "' is one of server '" + address.Server + "' of another configuration", nil
	}
	server := m.server(t, address)
	if slices.Contains(m.remotes[server], t.Remote) {
		return "tool '" + t.Remote + "' of that server is there already", nil
	}
	m.remotes[server] = append(m.remotes[server], t.Remote)
	tool := map[string]any{"server": server, "description": t.Description, "schema": json.RawMessage(schema)}
	name := m.names.Make(t.Name)
	if name != t.Remote {
		tool["remote_name"] = t.Remote
	}
	m.Tools[name] = tool
	return "", nil
}

// missing says what a tool needs that no table holds.
func missing(t *table.Tool, address table.Address) string {
	switch p := address.Prompt; {
	case address.Agent != "":
		return "tool '" + t.Name + "' asks an agent, which is no part of a table: where there is one, write {kind: agent, agent: " + address.Agent + "}"
	case p != nil && p.Model != "":
		return "tool '" + t.Name + "' asks model '" + p.Model + "', which is no part of a table: where there is one, write it by hand"
	}
	return ""
}

// server returns the name of the entry for a tool's address.
func (m *madeOfTable) server(t *table.Tool, address table.Address) string {
	key := strconv.Quote(t.Server) + t.Credential
	if name, ok := m.known[key]; ok {
		return name
	}
	entry, base := map[string]any{"load_tools": false}, ""
	if address.Command != nil {
		entry["command"], entry["args"] = address.Command[0], address.Command[1:]
		base = config.CommandName(address.Command)
	} else {
		entry["url"] = address.URL
		if strings.HasPrefix(address.URL, "http") {
			entry["transport"] = "auto" // KNIME's own servers speak jsonrpc, others http
		}
		if u, err := url.Parse(address.URL); err == nil {
			base = u.Hostname()
		}
	}
	base = config.EntryName(base)
	name := base
	for n := 2; m.Servers[name] != nil; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	if t.Credential != "" {
		entry["auth"] = map[string]any{"type": "credential", "secret": m.secret(t.Credential)}
	}
	m.known[key], m.Servers[name] = name, entry
	return name
}

// secret returns the name of the entry for a credential. Two that would be read from one
// variable get names of their own.
func (m *madeOfTable) secret(credential string) string {
	if m.variables == nil {
		m.variables = map[string]string{}
	}
	base := config.EntryName(credential)
	for n, name := 2, base; ; n++ {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if other, taken := m.variables[variable]; !taken || other == credential {
			m.variables[variable], m.Secrets[name] = credential, map[string]string{"env": variable}
			return name
		}
		name = base + "_" + strconv.Itoa(n)
	}
}
