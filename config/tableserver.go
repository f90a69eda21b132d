package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// server finds or adds the server of a row.
func (t *tableTools) server(row table.ToolRow) (string, error) {
	address, err := row.Tool.Address()
	if err != nil {
		return "", err
	}
	configured := t.c.withTarget(rowServer("", address), row.Tool.Credential, row.Tool.Remote)
	key := RowKey(address, row.Tool.Credential) + " " + configured // rows of one target may be of several entries
	if name, known := t.opened[key]; known {
		return name, nil
	}
	insecure := ""
	if u, err := url.Parse(address.URL); err == nil && (u.Scheme == "http" || u.Scheme == "ws") &&
		!local(u.Hostname()) && configured == "" {
		insecure = unencrypted(u.Scheme, row.Tool.Credential != "")
	}
	grade := t.c.Policy.URLs.RequireHTTPS
	if insecure != "" && grade == "error" {
		return "", tenon.Errorf(tenon.CodeDenied, "tool '%s': %s", tenon.Visible(row.Tool.Name), insecure)
	}
	name, isOwn, err := t.c.tableServer(t.path, row.Tool, t.shared)
	if err != nil {
		return "", err
	}
	t.opened[key] = name
	if isOwn {
		t.own = append(t.own, name)
		return name, nil
	}
	entry, no := t.c.Servers[name], false
	entry.LoadTools = &no
	t.c.Servers[name] = entry
	if t.at != nil {
		delete(t.c.added, "servers."+name)
		t.place("servers." + name)
	}
	if insecure != "" && grade != "off" {
		t.note("%s: %s: %s", t.path, row.Place(), insecure)
	}
	return name, nil
}

// TableServer returns the server for a row of the table at a path. If the row names a configured server, or has the
// target of one, TableServer returns that server, and own is true. Otherwise it adds a server that is not trusted:
// tenon ignores the annotations of its tools. Errors: invalid; denied, if the policy forbids the command or address,
// or the server is not enabled; not_found, for an unknown server or secret.
func (c *Config) TableServer(path string, t *table.Tool) (name string, own bool, err error) {
	return c.tableServer(path, t, nil)
}

// tableServer is TableServer for one of several rows. shared contains the names that several of the rows' servers
// would have.
func (c *Config) tableServer(path string, t *table.Tool, shared map[string]bool) (name string, own bool, err error) {
	address, err := t.Address()
	if err != nil {
		return "", false, err
	}
	if address.Server != "" {
		if _, ok := c.Servers[address.Server]; !ok {
			return "", false, tenon.Errorf(tenon.CodeNotFound, "tool '%s' is one of server '%s', which the "+
				"configuration does not have; servers: %s",
				tenon.Visible(t.Name), tenon.Visible(address.Server), strings.Join(c.ServerNames(), ", "))
		}
		return address.Server, true, c.usable(t, address.Server)
	}
	entry := rowServer(path, address)
	if name := c.withTarget(entry, t.Credential, t.Remote); name != "" {
		return name, true, c.usable(t, name)
	}
	if why := c.forbidden(address.Command); why != "" {
		return "", false, tenon.Errorf(tenon.CodeDenied, "tool '%s': %s", tenon.Visible(t.Name), why)
	}
	if address.URL != "" {
		if err := c.checkRowURL(t, address.URL); err != nil {
			return "", false, err
		}
	} else if entry.Cwd, err = os.Getwd(); err != nil {
		return "", false, tenon.Errorf(tenon.CodeInvalid, "tool '%s': the working directory is not known: %w",
			tenon.Visible(t.Name), err)
	}
	name = ServerName(address, t.Credential, shared, c.isTaken)
	if err := c.AddServer(name, entry, t.Credential); err != nil {
		return "", false, err
	}
	if c.tables == nil {
		c.tables = map[string]string{}
	}
	c.tables[name] = path
	return name, false, nil
}

// rowServer returns the entry for a server that only a table names.
func rowServer(path string, address table.Address) servers.Config {
	untrusted := false
	entry := servers.Config{Title: "server of table " + path, Trusted: &untrusted}
	if address.Command != nil {
		entry.Command, entry.Args = address.Command[0], address.Command[1:]
		return entry
	}
	entry.URL, entry.Transport = address.URL, servers.TransportAuto
	if u, err := url.Parse(address.URL); err == nil && (u.Scheme == "ws" || u.Scheme == "wss") {
		entry.Transport = servers.TransportWebSocket
	}
	return entry
}

// checkRowURL checks the address of a row against the policy. A host with characters other than ASCII is refused: it
// has several spellings, and a rule may use another one.
func (c *Config) checkRowURL(t *table.Tool, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return tenon.Errorf(tenon.CodeInvalid, "tool '%s': %w", tenon.Visible(t.Name), err)
	case !HasPlainHost(u):
		return tenon.Errorf(tenon.CodeDenied, "tool '%s': the host '%s' is not written in ASCII; write it as xn--…",
			tenon.Visible(t.Name), tenon.Visible(u.Hostname()))
	case !c.Policy.URLs.AllowsPrivate() && outbound.NamesPrivate(u):
		return tenon.Errorf(tenon.CodeDenied, "tool '%s': '%s' is a private address or this machine, and "+
			"policy.urls.allow_private is false", tenon.Visible(t.Name), u.Hostname())
	}
	return nil
}

// withTarget returns the configured server with the same command or URL as an entry, or "" if there is none. If there
// are several, it prefers the same credential, then filters that keep the tool, then the first name.
func (c *Config) withTarget(entry servers.Config, credential, remote string) string {
	best, most := "", -1
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		path := "servers." + name
		if c.added[path] || c.rows[path] != nil || !SameTarget(c.resolved(name), entry) {
			continue
		}
		points := 0
		if credential != "" && c.SecretName(path+".auth.secret") == credential {
			points += 2
		}
		if c.Servers[name].IsEnabled() && c.hides(name, remote) == "" {
			points++
		}
		if points > most {
			best, most = name, points
		}
	}
	return best
}

// resolved returns a server's entry with the variables in its command or URL expanded, even if the server is not
// enabled.
func (c *Config) resolved(name string) servers.Config {
	entry := c.Servers[name]
	if entry.IsEnabled() || c.vars == nil {
		return entry
	}
	vars := *c.vars
	vars.Lax = true
	expand := func(s string) string { return vars.Expand(s, &tree.Node{Src: &tree.Source{}}, "", &tree.Sink{}) }
	entry.URL, entry.Command, entry.Args = expand(entry.URL), expand(entry.Command), slices.Clone(entry.Args)
	for i, a := range entry.Args {
		entry.Args[i] = expand(a)
	}
	return entry
}

// usable returns an error if a row's configured server is not enabled.
func (c *Config) usable(t *table.Tool, name string) error {
	if !c.Servers[name].IsEnabled() {
		return tenon.Errorf(tenon.CodeDenied, "tool '%s' is one of server '%s', which is not enabled: set "+
			"servers.%s.enabled to true", tenon.Visible(t.Name), name, name)
	}
	return nil
}

// hides returns the key of the filter that leaves out a tool of a server, or "" if none does. `exclude` of all
// configured servers with the same target applies, so that a table cannot evade it. `include` says which tools an entry
// has, so that two entries can divide the tools of one target.
func (c *Config) hides(server, remote string) string {
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		entry, path := c.Servers[name], "servers."+name
		if c.added[path] || c.rows[path] != nil || name != server && !SameTarget(entry, c.Servers[server]) {
			continue
		}
		if catalog.Match(entry.Exclude, remote) {
			return path + ".exclude"
		}
		if name == server && len(entry.Include) > 0 && !catalog.Match(entry.Include, remote) {
			return path + ".include"
		}
	}
	return ""
}

// RowKey returns a digest of the target of a row and its credential.
func RowKey(address table.Address, credential string) string {
	return digest("row", address.Server, TargetDigest(rowServer("", address)), credential)
}

// serverBase returns the first part of the name of a server that only a table names: its host or program. It is not
// unique.
func serverBase(address table.Address) string {
	base := ""
	if address.Command != nil {
		base = CommandName(address.Command)
	} else if u, err := url.Parse(address.URL); err == nil {
		base = CanonicalHost(u)
	}
	if !tree.IsName(base) { // such as an IPv6 address
		base = EntryName(base)
	}
	return base[:min(len(base), 48)]
}

// sharedNames returns the names that several servers of the rows, with different targets, would have.
func sharedNames(rows []table.ToolRow) map[string]bool {
	keys, shared := map[string]string{}, map[string]bool{}
	for _, row := range rows {
		address, err := row.Tool.Address()
		if err != nil || row.Tool.Kind != table.MCP || address.Server != "" {
			continue // the row is refused, or defines no server
		}
		base, key := serverBase(address), RowKey(address, row.Tool.Credential)
		if other, ok := keys[base]; ok && other != key {
			shared[base] = true
		}
		keys[base] = key
	}
	return shared
}

// ServerName returns the name of a server that only rows of tables name: its host or program. If that is taken or
// shared, a part of the target's digest is appended.
func ServerName(address table.Address, credential string, shared map[string]bool, taken func(string) bool) string {
	base, hex := serverBase(address), strings.TrimPrefix(RowKey(address, credential), "sha256:")
	name := base
	for n := 6; shared[base] && name == base || taken(name); n += 2 {
		name = base + "-" + hex[:min(n, len(hex))]
		if n > len(hex) {
			name += strings.Repeat("_", n-len(hex))
		}
	}
	return name
}

// isTaken reports whether a configured server or a built-in one has the name.
func (c *Config) isTaken(name string) bool {
	_, taken := c.Servers[name]
	return taken || slices.Contains(catalog.OwnServers(), name)
}

// RowServer returns the configured server that a row names or whose target it has, or "" if there is none. left is
// the reason if the tool cannot be used.
func (c *Config) RowServer(t *table.Tool, address table.Address) (name, left string) {
	if name = address.Server; name == "" {
		name = c.withTarget(rowServer("", address), t.Credential, t.Remote)
	}
	if _, ok := c.Servers[name]; !ok {
		return "", ""
	}
	if err := c.usable(t, name); err != nil {
		return name, err.Error()
	}
	if why := c.hides(name, t.Remote); why != "" {
		return name, hiddenTool(name, t.Remote, why)
	}
	return name, ""
}

// hiddenTool says that a filter leaves out a tool.
func hiddenTool(server, remote, why string) string {
	return fmt.Sprintf("server '%s' of the configuration hides tool '%s' (%s)", server, tenon.Visible(remote), why)
}

// forbidden returns the reason why a command may not be started, or "" if it may.
func (c *Config) forbidden(command []string) string {
	allow := c.Policy.Commands.Allow
	if len(allow) == 0 || len(command) == 0 || slices.Contains(allow, command[0]) {
		return ""
	}
	return fmt.Sprintf("Invalid command '%s'. Supported commands: %s", command[0], strings.Join(allow, ", "))
}

// unencrypted returns the message for an address with an unencrypted scheme.
func unencrypted(scheme string, credential bool) string {
	message := fmt.Sprintf("'url' must use %ss:// (or %s:// for localhost)", scheme, scheme)
	if credential {
		message += ": a credential would go over it unencrypted"
	}
	return message
}
