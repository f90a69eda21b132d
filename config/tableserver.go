package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// server finds or makes the server of a row.
func (t *tableTools) server(row table.ToolRow) (string, error) {
	name, isOwn, err := t.c.TableServer(t.path, row.Tool)
	if err != nil {
		return "", err
	}
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
	insecure := ""
	if u, err := url.Parse(entry.URL); err == nil && (u.Scheme == "http" || u.Scheme == "ws") && !local(u.Hostname()) {
		insecure = unencrypted(u.Scheme, row.Tool.Credential != "")
	}
	switch grade := t.c.Policy.URLs.RequireHTTPS; {
	case insecure == "" || grade == "off":
	case grade == "error":
		return "", tenon.Errorf(tenon.CodeDenied, "tool '%s': %s", tenon.Visible(row.Tool.Name), insecure)
	default:
		t.note("%s: %s: %s", t.path, row.Place(), insecure)
	}
	return name, nil
}

// TableServer returns the server of a row of the table at a path: one of the
// configuration by its name, or one that is added, for which what the server says of its
// tools counts for nothing. Errors: invalid; denied, for a command or an address that
// the policy does not allow; not_found, for a server or a secret that is not there.
func (c *Config) TableServer(path string, t *table.Tool) (name string, own bool, err error) {
	address, err := t.Address()
	if err != nil {
		return "", false, err
	}
	entry := servers.Config{Title: "server of table " + path}
	switch {
	case address.Server != "":
		if _, ok := c.Servers[address.Server]; !ok {
			return "", false, tenon.Errorf(tenon.CodeNotFound, "tool '%s' is one of server '%s', which the configuration does not have; servers: %s",
				tenon.Visible(t.Name), tenon.Visible(address.Server), strings.Join(c.ServerNames(), ", "))
		}
		return address.Server, true, nil
	case address.Command != nil:
		if why := c.forbidden(address.Command); why != "" {
			return "", false, tenon.Errorf(tenon.CodeDenied, "tool '%s': %s", tenon.Visible(t.Name), why)
		}
		entry.Command, entry.Args = address.Command[0], address.Command[1:]
		name = CommandName(address.Command)
	default:
		u, err := url.Parse(address.URL)
		if err != nil {
			return "", false, tenon.Errorf(tenon.CodeInvalid, "tool '%s': %w", tenon.Visible(t.Name), err)
		}
		if !c.Policy.URLs.AllowsPrivate() && outbound.NamesPrivate(u) {
			return "", false, tenon.Errorf(tenon.CodeDenied, "tool '%s': '%s' is a private address or this machine, and policy.urls.allow_private is false", tenon.Visible(t.Name), u.Hostname())
		}
		entry.URL, name = address.URL, u.Hostname()
		if entry.Transport = servers.TransportAuto; u.Scheme == "ws" || u.Scheme == "wss" {
			entry.Transport = servers.TransportWebSocket
		}
	}
	if !validName(name) { // an address of IPv6, say
		name = EntryName(name)
	}
	base := name
	for n := 2; ; n++ {
		if _, taken := c.Servers[name]; !taken && !slices.Contains(catalog.OwnServers(), name) {
			break
		}
		name = base + "_" + strconv.Itoa(n)
	}
	untrusted := false
	entry.Trusted = &untrusted
	if err := c.AddServer(name, entry, t.Credential); err != nil {
		return "", false, err
	}
	if c.tables == nil {
		c.tables = map[string]string{}
	}
	c.tables[name] = path
	return name, false, nil
}

// forbidden says why a command may not be started, "" where it may.
func (c *Config) forbidden(command []string) string {
	allow := c.Policy.Commands.Allow
	if len(allow) == 0 || len(command) == 0 || slices.Contains(allow, command[0]) {
		return ""
	}
	return fmt.Sprintf("Invalid command '%s'. Supported commands: %s", command[0], strings.Join(allow, ", "))
}

// unencrypted says that others can listen to what goes to an address.
func unencrypted(scheme string, credential bool) string {
	message := fmt.Sprintf("'url' must use %ss:// (or %s:// for localhost)", scheme, scheme)
	if credential {
		message += ": a credential would go over it unencrypted"
	}
	return message
}
