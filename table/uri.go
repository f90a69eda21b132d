package table

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// The schemes of a server's address that are tenon's own: a server of the
// configuration by its name, and a command with its arguments. KNIME cannot run
// either.
const (
	SchemeServer  = "tenon+server"
	SchemeCommand = "stdio"
	schemeHTTP    = "tenon+http"
	schemePrompt  = "tenon+prompt"
	schemeAgent   = "tenon+agent"
)

// Request is what a tool of kind [HTTP] sends: texts with expressions over the arguments
// between {{ and }}, as in the configuration.
type Request struct {
	Method  string // empty: GET
	URL     string
	Headers map[string]string
	Body    string
}

// PromptText is what a tool of kind [Prompt] asks a model.
type PromptText struct {
	Template string
	Model    string // an entry of models, or PROVIDER/MODEL; empty: the agent's
}

// URI is the server_uri of a tool that sends the request.
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

// URI is the server_uri of a tool that asks.
func (p PromptText) URI() string {
	uri := schemePrompt + ":?template=" + escape(p.Template)
	if p.Model != "" {
		uri += "&model=" + escape(p.Model)
	}
	return uri
}

// AgentURI is the server_uri of a tool that calls an agent of the configuration.
func AgentURI(name string) string { return schemeAgent + ":" + url.PathEscape(name) }

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
	// What a tool of a kind of tenon's own is.
	Request *Request
	Prompt  *PromptText
	Agent   string // of the configuration
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
	if t.Kind.IsOwn() {
		return t.own(u)
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

// own takes the address of a kind of tenon's own apart.
func (t *Tool) own(u *url.URL) (a Address, err error) {
	wrong := func(format string, args ...any) (Address, error) {
		return Address{}, invalid("the server_uri of tool '%s' "+format, append([]any{tenon.Visible(t.Name)}, args...)...)
	}
	if want := map[Kind]string{HTTP: schemeHTTP, Prompt: schemePrompt, Agent: schemeAgent}[t.Kind]; u.Scheme != want {
		return wrong("begins with '%s:'; that of kind %s begins with %s:", tenon.Visible(u.Scheme), t.Kind, want)
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
		if a.Prompt = (&PromptText{Template: q.Get("template"), Model: q.Get("model")}); a.Prompt.Template == "" {
			return wrong("has no template")
		}
		return a, nil
	}
	a.Request = &Request{Method: q.Get("method"), URL: q.Get("url"), Body: q.Get("body"), Headers: map[string]string{}}
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

// uri is what a table stores as server_uri: the address, and as its fragment what
// has no field of its own. Credential says that the layout has none for it.
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

// address is the server_uri as it is shown.
func (t *Tool) address() string { return t.uri(false) }

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// readURI takes a stored server_uri apart. A fragment that is not ours stays part
// of the address.
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
	if remote != "" {
		t.Remote = remote
	}
	if credential != "" {
		t.Credential = credential
	}
}
