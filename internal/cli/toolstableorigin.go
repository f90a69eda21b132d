package cli

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// origin is the data of a server in a table, the same for all of its tools.
type origin struct {
	address, credential string
	foreign             bool // KNIME cannot call it
}

func (a *app) origin(cfg *config.Config, server string, entry servers.Config) (o origin, err error) {
	named := cfg.File != "" || cfg.Path != "" // a reader of the table can have the entry
	switch {
	case entry.Transport != servers.TransportStdio && fromVariables(cfg.Written("servers."+server+".url"), entry.URL):
		a.note("server '%s' is named as %s: its URL has values of variables in it, which a table must not hold",
			server, table.ServerURI(server))
		return origin{address: table.ServerURI(server), foreign: true}, nil
	case entry.Transport != servers.TransportStdio && named && len(servers.SecretPlaces(entry.URL)) > 0:
		a.note("server '%s' is named as %s: its URL contains a credential, which a table must not hold",
			server, table.ServerURI(server))
		return origin{address: table.ServerURI(server), foreign: true}, nil
	case entry.Transport != servers.TransportStdio:
		o.address = entry.URL
	case named:
		o.address = table.ServerURI(server)
	case len(servers.SecretArgs(entry.Args)) > 0:
		return o, tenon.Errorf(tenon.CodeInvalid, "server '%s': its arguments contain a credential, which a table "+
			"must not: write the server into tenon.yaml (tenon servers add), and the table names it", server)
	default:
		o.address = table.CommandURI(append([]string{entry.Command}, entry.Args...))
	}
	o.foreign = strings.HasPrefix(o.address, table.SchemeServer+":") ||
		strings.HasPrefix(o.address, table.SchemeCommand+":")
	if o.address, err = bare(o.address); err != nil {
		return o, tenon.Errorf(tenon.CodeInvalid, "server '%s': %w", server, err)
	}
	if _, query, ok := strings.Cut(o.address, "?"); ok && query != "" && !o.foreign {
		a.note("server '%s': the table contains its whole URL, including the part after the ?, for everybody who "+
			"gets the table; put a secret in it into a variable", server)
	}
	if len(entry.Headers) > 0 && o.address == entry.URL {
		a.note("server '%s' gets the headers %s, which a table does not hold: where the server is not configured, its "+
			"rows are called without them; put a credential into %s, with a secret under secrets", server,
			tenon.Visible(strings.Join(slices.Sorted(maps.Keys(entry.Headers)), ", ")), authOf(server, named))
	}
	if entry.Auth.Type != "" && entry.Auth.Type != servers.AuthNone {
		if o.credential = cfg.SecretName("servers." + server + ".auth.secret"); o.credential == "" {
			a.note("server '%s' needs credentials that have no name, but a table holds only names of secrets; put the "+
				"secret under secrets and name it in %s.secret", server, authOf(server, named))
		}
	}
	return o, nil
}

// authOf names the key for the authentication of a server. A server of the command line has no entry yet.
func authOf(server string, named bool) string {
	if named {
		return "servers." + server + ".auth"
	}
	return "auth of an entry in tenon.yaml (tenon servers add)"
}

// fromVariables reports whether an address takes values of variables or secrets after its host, where tokens usually
// are. text is the address as it is written in the configuration.
func fromVariables(text, address string) bool {
	behind := text
	if _, after, ok := strings.Cut(text, "://"); ok {
		behind = after
	}
	if i := strings.IndexAny(behind, "/?#"); i >= 0 && strings.Contains(behind[i:], "${") {
		return true
	}
	return strings.Contains(text, "${") && strings.Contains(address, "?")
}

// bare refuses an address with a password, because tables are passed on.
func bare(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if _, has := u.User.Password(); has {
		return "", fmt.Errorf("its URL holds a password, which a table must not: use auth with a secret")
	}
	if len(servers.SecretPlaces(address)) > 0 {
		return "", fmt.Errorf("its URL contains a credential, which a table must not: write the server into " +
			"tenon.yaml (tenon servers add), and the table names it")
	}
	return address, nil
}
