package table

import (
	"net/url"
	"strings"
)

// The schemes of a server's address that are tenon's own: a server of the
// configuration by its name, and a command with its arguments. KNIME cannot run
// either.
const (
	SchemeServer  = "tenon+server"
	SchemeCommand = "stdio"
)

// CommandURI makes the address of a command. It never has environment variables:
// they may be secrets.
func CommandURI(argv []string) string {
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = "arg=" + escape(a)
	}
	return SchemeCommand + ":?" + strings.Join(args, "&")
}

// ServerURI makes the address of a server of the configuration.
func ServerURI(name string) string { return SchemeServer + ":" + url.PathEscape(name) }

// Address is a server's address, taken apart.
type Address struct {
	URL     string   // http, https, ws, wss
	Server  string   // of the configuration
	Command []string // and its arguments
}

// Address takes the tool's server apart.
func (t *Tool) Address() (Address, error) {
	if t.Server == "" {
		return Address{}, invalid("tool '%s' has no server_uri (field 8)", t.Name)
	}
	u, err := url.Parse(t.Server)
	if err != nil {
		return Address{}, invalid("the server_uri of tool '%s' is no address: %w", t.Name, err)
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
		if u.Host == "" {
			return Address{}, invalid("the server_uri of tool '%s' names no host: %s", t.Name, t.Server)
		}
		return Address{URL: t.Server}, nil
	case SchemeServer:
		name, err := url.PathUnescape(u.Opaque)
		if err != nil || name == "" {
			return Address{}, invalid("the server_uri of tool '%s' names no server: %s", t.Name, t.Server)
		}
		return Address{Server: name}, nil
	case SchemeCommand:
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil || len(q["arg"]) == 0 || q["arg"][0] == "" {
			return Address{}, invalid("the server_uri of tool '%s' has no command: %s", t.Name, t.Server)
		}
		return Address{Command: q["arg"]}, nil
	}
	return Address{}, invalid("the server_uri of tool '%s' begins with '%s:'; known are http, https, ws, wss, tenon+server and stdio", t.Name, u.Scheme)
}

// uri is what a table stores as server_uri: the address, and as its fragment what
// has no field of its own. Credential says that the layout has none for it.
func (t *Tool) uri(credential bool) string {
	var parts []string
	if t.Remote != "" && t.Remote != t.Name {
		parts = append(parts, "tool="+escape(t.Remote))
	}
	if credential && t.Credential != "" {
		parts = append(parts, "credential="+escape(t.Credential))
	}
	if len(parts) == 0 {
		return t.Server
	}
	return t.Server + "#" + strings.Join(parts, "&")
}

// address is the server_uri as it is shown.
func (t *Tool) address() string { return t.uri(false) }

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// readURI takes a stored server_uri apart. A fragment that is not ours stays part
// of the address.
func (t *Tool) readURI(s string) {
	if s == "" {
		return
	}
	t.Server, t.Remote = s, t.Name
	base, fragment, ok := strings.Cut(s, "#")
	if !ok {
		return
	}
	remote, credential := "", ""
	for _, part := range strings.Split(fragment, "&") {
		k, v, _ := strings.Cut(part, "=")
		text, err := url.PathUnescape(v)
		switch {
		case err == nil && k == "tool" && text != "":
			remote = text
		case err == nil && k == "credential" && text != "":
			credential = text
		default:
			return
		}
	}
	t.Server = base
	if remote != "" {
		t.Remote = remote
	}
	if credential != "" {
		t.Credential = credential
	}
}
