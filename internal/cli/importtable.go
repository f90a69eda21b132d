package cli

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

// isTableFile reports whether a file to import is an Arrow table.
func isTableFile(file string) bool { return isTable(file) || table.IsBundle(file) }

// importTable turns a tool table into configuration entries. Each tool of an MCP server becomes an entry of tools, each
// address with its credential an entry of servers, and each credential an entry of secrets, to fill in. Rows that a
// configuration cannot express are reported. Workflows are returned separately: with --write they become files.
func (a *app) importTable(ctx context.Context, file string, write bool) (src config.Source, packs []importedPack,
	err error) {
	src = config.Source{Kind: config.KindKNIME, Label: file}
	if src.Path, err = filepath.Abs(file); err != nil {
		return src, nil, tenon.Errorf(tenon.CodeInvalid, "the path of %s is not known: %w", file, err)
	}
	src.Dir = filepath.Dir(src.Path)
	if write { // the entries name files next to the configuration file
		if src.Dir, err = filepath.Abs(a.importDir()); err != nil {
			return src, nil, tenon.Errorf(tenon.CodeInvalid, "the folder of %s is not known: %w", a.config, err)
		}
	}
	r, err := table.Open(ctx, file, a.tableOptions(&config.Config{}))
	if err != nil {
		return src, nil, err
	}
	defer closing(r, &err)
	c, err := r.Column("")
	if err != nil {
		return src, nil, err
	}
	there := &config.Config{}
	if write {
		if there, err = a.importTarget(ctx); err != nil {
			return src, nil, err
		}
	}
	m := &madeOfTable{from: r, there: there, remotes: map[string]map[string]string{},
		Servers: map[string]map[string]any{}, Tools: map[string]map[string]any{},
		Secrets: map[string]map[string]string{}, known: map[string]string{}, used: map[string]bool{}, write: write}
	var rows []table.ToolRow
	notes := rowNotes{app: a, table: file}
	for row, err := range r.Tools(ctx, c) {
		if err != nil {
			return src, nil, err
		}
		if err := row.Flaw(); err != nil {
			notes.add(row, err)
			continue
		}
		if row.Tool == nil {
			a.note("%s: %s: left out: the cell is missing", file, row.Place())
			continue
		}
		rows = append(rows, row)
	}
	if err := notes.end(len(rows)); err != nil {
		return src, nil, err
	}
	m.shared = config.OrderRows(rows)
	for _, row := range rows {
		left, err := m.add(row)
		if err != nil {
			left = err.Error()
		}
		if left != "" {
			a.note("%s: %s: left out: %s", file, row.Place(), left)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Secrets)) {
		a.note("fill in secrets.%s: it is read from the variable %s", name, m.Secrets[name]["env"])
	}
	src.Servers = slices.Sorted(maps.Keys(m.used))
	src.Data, err = encodeJSON(m)
	if err != nil {
		return src, nil, tenon.Errorf(tenon.CodeInternal, "%s: %w", file, err)
	}
	return src, m.packs, nil
}

// importTarget reads the configuration that receives the entries, so that no server is added twice. If the file cannot
// be read, the error is reported when it is written.
func (a *app) importTarget(ctx context.Context) (*config.Config, error) {
	o := a.configOptions()
	o.File, o.NoTables = a.importFile(), true
	if _, err := os.Stat(o.File); err != nil {
		return &config.Config{}, nil
	}
	c, err := config.Load(ctx, o)
	if err != nil {
		return &config.Config{}, ctx.Err()
	}
	return c, nil
}

// madeOfTable is the configuration that tools import makes from a tool table.
type madeOfTable struct {
	from    *table.Reader
	there   *config.Config // receives the entries
	shared  map[string]bool
	names   catalog.ToolNames
	remotes map[string]map[string]string // server → its tools that the table has → their names
	Servers map[string]map[string]any    `json:"servers,omitempty"`
	Tools   map[string]map[string]any    `json:"tools,omitempty"`
	Secrets map[string]map[string]string `json:"secrets,omitempty"`

	known map[string]string // address and credential → server
	used  map[string]bool   // servers of the receiving file that get tools
	write bool              // files may be written
	// variables maps the environment variables of secrets to their credentials.
	variables map[string]string
	packs     []importedPack
}

// importedPack is a workflow of a table that becomes a file.
type importedPack struct {
	path string // as written in the configuration
	zip  []byte
}

// addWorkflow adds the file of a workflow, and an entry of tools that names it.
func (m *madeOfTable) addWorkflow(t *table.Tool) (left string) {
	if !m.write {
		return "tool '" + t.Name + "' is a workflow: with --write it becomes a file beside tenon.yaml"
	}
	w, err := foreignWorkflow(m.from, t)
	if err == nil {
		var zip []byte
		if zip, err = zipPack(w.Name, w.Pack); err == nil {
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

// MarshalJSON writes only the three sections.
func (m *madeOfTable) MarshalJSON() ([]byte, error) {
	return encodeJSON(struct {
		Secrets any `json:"secrets,omitempty"`
		Servers any `json:"servers,omitempty"`
		Tools   any `json:"tools,omitempty"`
	}{m.Secrets, m.Servers, m.Tools})
}

// add adds a row. If the row is left out, left is the reason.
func (m *madeOfTable) add(row table.ToolRow) (left string, err error) {
	t := row.Tool
	if t.Kind == table.Workflow {
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
		if flaw := config.RowFlaw(t); flaw != "" {
			return flaw, nil
		}
		m.Tools[m.names.Make(t.Name)] = config.RowEntry(t, address, schema)
		return "", nil
	}
	server, left := m.there.RowServer(t, address)
	switch {
	case left != "":
		return left, nil
	case server != "" && m.there.Servers[server].LoadsTools():
		return "tool '" + t.Name + "' belongs to server '" + server + "', which " + m.there.File + " already has", nil
	case server == "" && address.Server != "":
		return "tool '" + t.Name + "' belongs to server '" + address.Server + "' of another configuration", nil
	case server == "":
		server = m.server(t, address)
	default:
		if name := entryOfTool(m.there, server, t.Remote); name != "" {
			return "tool '" + t.Name + "': " + m.there.File + " has tools." + name + " already", nil
		}
		m.used[server] = true
	}
	if as, again := m.remotes[server][t.Remote]; again {
		left = "tool '" + t.Remote + "' of that server was already imported"
		if as != t.Name {
			left += " as '" + as + "', and a tool has one name; this row names it '" + t.Name + "'"
		}
		return left, nil
	}
	if m.remotes[server] == nil {
		m.remotes[server] = map[string]string{}
	}
	m.remotes[server][t.Remote] = t.Name
	tool := map[string]any{"server": server, "description": t.Description, "schema": json.RawMessage(schema)}
	name := m.names.Make(t.Name)
	if name != t.Remote {
		tool["remote_name"] = t.Remote
	}
	m.Tools[name] = tool
	return "", nil
}

// entryOfTool returns the name of the entry for a tool of a server, or "".
func entryOfTool(c *config.Config, server, remote string) string {
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		if e := c.Tools[name].WithDefaults(name); e.Server == server && e.RemoteName == remote {
			return name
		}
	}
	return ""
}

// missing describes the agent or model that a tool needs and that a table cannot contain.
func missing(t *table.Tool, address table.Address) string {
	switch p := address.Prompt; {
	case address.Agent != "":
		return "tool '" + t.Name + "' asks an agent, which a table does not contain: if you have the agent, write " +
			"{kind: agent, agent: " + address.Agent + "}"
	case p != nil && p.Model != "":
		return "tool '" + t.Name + "' asks model '" + p.Model + "', which a table does not contain: if you have the " +
			"model, write the tool by hand"
	}
	return ""
}

// server returns the name of the entry for a tool's address.
func (m *madeOfTable) server(t *table.Tool, address table.Address) string {
	key := config.RowKey(address, t.Credential)
	if name, ok := m.known[key]; ok {
		return name
	}
	entry := map[string]any{"load_tools": false}
	if address.Command != nil {
		words := make([]string, len(address.Command))
		for i, word := range address.Command {
			words[i] = config.Literal(word)
		}
		entry["command"], entry["args"] = words[0], words[1:]
	} else {
		entry["url"] = config.Literal(address.URL)
		if strings.HasPrefix(address.URL, "http") {
			entry["transport"] = "auto" // KNIME's own servers speak jsonrpc, others http
		}
	}
	name := config.ServerName(address, t.Credential, m.shared, func(name string) bool {
		_, there := m.there.Servers[name]
		return there || m.Servers[config.EntryName(name)] != nil
	})
	name = config.EntryName(name)
	if t.Credential != "" {
		entry["auth"] = map[string]any{"type": "credential", "secret": m.secret(t.Credential)}
	}
	m.known[key], m.Servers[name] = name, entry
	return name
}

// secret returns the name of the entry for a credential. If another credential has the same variable, it adds a number
// to the name.
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
