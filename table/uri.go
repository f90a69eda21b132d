package table

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// The URI schemes of tenon: SchemeServer names a server of the configuration, SchemeCommand is a
// command with its arguments. The other three define tools of tenon's kinds. KNIME cannot use any
// of them.
const (
	SchemeServer  = "tenon+server"
	SchemeCommand = "stdio"
	schemeHTTP    = "tenon+http"
	schemePrompt  = "tenon+prompt"
	schemeAgent   = "tenon+agent"
)

// Request is the HTTP request of a tool of kind [HTTP]. Its texts may contain expressions over the
// arguments between {{ and }}, as in the configuration.
type Request struct {
	Method  string // "" means GET
	URL     string
	Headers map[string]string
	Body    string
}

// PromptText is the prompt of a tool of kind [Prompt].
type PromptText struct {
	Template string
	Model    string // an entry of models, or PROVIDER/MODEL; "" means the agent's model
}

// URI returns the server_uri of a tool that sends the request.
func (r Request) URI() string {
	parts := []string{"url=" + escape(r.URL)}
	if r.Method != "" {
		parts = append(parts, "method="+escape(r.Method))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		parts = append(parts, "header="+escape(name+": "+r.Headers[name]))
	}
	if r.Body != "" {
		parts = append(parts, "body="+escape(r.Body))
	}
	return schemeHTTP + ":?" + strings.Join(parts, "&")
}

// URI returns the server_uri of a tool that sends the prompt to a model.
func (p PromptText) URI() string {
	uri := schemePrompt + ":?template=" + escape(p.Template)
	if p.Model != "" {
		uri += "&model=" + escape(p.Model)
	}
	return uri
}

// AgentURI returns the server_uri of a tool that calls an agent of the configuration.
func AgentURI(name string) string { return schemeAgent + ":" + url.PathEscape(name) }

// CommandURI returns the address of a command. It never contains environment variables, because
// they may be secrets.
func CommandURI(argv []string) string {
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = "arg=" + escape(a)
	}
	return SchemeCommand + ":?" + strings.Join(args, "&")
}

// ServerURI returns the address of a server of the configuration.
func ServerURI(name string) string { return SchemeServer + ":" + url.PathEscape(name) }

// Address is a parsed server_uri. Exactly one field is set, by the scheme of the URI and the tool's
// kind.
type Address struct {
	URL     string   // http, https, ws, wss
	Server  string   // the name of a server of the configuration
	Command []string // a command and its arguments
	// The fields below define a tool of tenon's kinds.
	Request *Request
	Prompt  *PromptText
	Agent   string // the name of an agent of the configuration
}

// Address parses the tool's server_uri.
func (t *Tool) Address() (Address, error) {
	name := tenon.Visible(t.Name)
	if t.Server == "" {
		return Address{}, invalid("tool '%s' has no server_uri (field 8)", name)
	}
	u, err := url.Parse(t.Server)
	if err != nil {
		return Address{}, invalid("the server_uri of tool '%s' is not a URI: %w", name, err)
	}
	if t.Kind.IsOwn() {
		return t.own(u)
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
		if u.Host == "" {
			return Address{}, invalid("the server_uri of tool '%s' names no host: %s", name, tenon.Visible(t.Server))
		}
		return Address{URL: t.Server}, nil
	case SchemeServer:
		server, err := url.PathUnescape(u.Opaque)
		if err != nil || server == "" {
			return Address{}, invalid("the server_uri of tool '%s' names no server: %s", name, tenon.Visible(t.Server))
		}
		return Address{Server: server}, nil
	case SchemeCommand:
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil || len(q["arg"]) == 0 || q["arg"][0] == "" {
			return Address{}, invalid("the server_uri of tool '%s' has no command: %s", name, tenon.Visible(t.Server))
		}
		return Address{Command: q["arg"]}, nil
	}
	if u.Scheme == "" {
		return Address{}, invalid("the server_uri of tool '%s' has no scheme such as https: %s", name,
			tenon.Visible(t.Server))
	}
	return Address{}, invalid("the server_uri of tool '%s' begins with '%s:'; known are http, https, ws, wss, "+
		"tenon+server and stdio", name, u.Scheme)
}

// own parses the server_uri of a tool of tenon's kinds.
func (t *Tool) own(u *url.URL) (a Address, err error) {
	wrong := func(format string, args ...any) (Address, error) {
		args = append([]any{tenon.Visible(t.Name)}, args...)
		return Address{}, invalid("the server_uri of tool '%s' "+format, args...)
	}
	if want := map[Kind]string{HTTP: schemeHTTP, Prompt: schemePrompt, Agent: schemeAgent}[t.Kind]; u.Scheme != want {
		return wrong("begins with '%s:'; the server_uri of kind %s begins with %s:",
			tenon.Visible(u.Scheme), t.Kind, want)
	}
	if t.Kind == Agent {
		if a.Agent, err = url.PathUnescape(u.Opaque); err != nil || a.Agent == "" {
			return wrong("names no agent")
		}
		return a, nil
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong("cannot be read: %w", err)
	}
	if t.Kind == Prompt {
		a.Prompt = &PromptText{Template: q.Get("template"), Model: q.Get("model")}
		if a.Prompt.Template == "" {
			return wrong("has no template")
		}
		return a, nil
	}
	a.Request = &Request{Method: q.Get("method"), URL: q.Get("url"), Body: q.Get("body"),
		Headers: map[string]string{}}
	if a.Request.URL == "" {
		return wrong("has no url")
	}
	for _, h := range q["header"] {
		name, value, ok := strings.Cut(h, ": ")
		if !ok || name == "" {
			return wrong("has a header that is not NAME: VALUE")
		}
		a.Request.Headers[name] = value
	}
	return a, nil
}

// uri returns the server_uri that a table stores. Its fragment holds the properties that have no
// field in the layout: the tool's name on the server and, if credential is true, the credential.
func (t *Tool) uri(credential bool) string {
	if t.Kind.IsOwn() {
		return t.Server
	}
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

// address returns the server_uri in the form that is shown.
func (t *Tool) address() string { return t.uri(false) }

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// readURI parses a stored server_uri. A fragment that tenon did not write stays part of the
// address.
func (t *Tool) readURI(s string) {
	if s == "" {
		return
	}
	t.Server = s
	if t.Kind.IsOwn() {
		return
	}
	t.Remote = t.Name
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
	t.Remote = cmp.Or(remote, t.Remote)
	t.Credential = cmp.Or(credential, t.Credential)
}
