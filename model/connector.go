package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// connector is an entry of models.NAME.tools with the key mcp: an MCP server that the provider calls by itself. The
// form is the same for all APIs:
//
//	wiki: {mcp: https://wiki.example/mcp, token: "${WIKI_TOKEN}", allowed_tools: [search]}
//
// Other keys are members of the provider's declaration, in the provider's words.
type connector struct {
	name, url string
	token     string          // OAuth access token for the server; may be empty
	allowed   []string        // names of the server's tools; nil means all
	rest      json.RawMessage // an object
}

// connectorBeta is the value of the header anthropic-beta for connectors.
const connectorBeta = "mcp-client-2025-11-20"

// connectorName is the form of a connector's name, which all APIs accept.
var connectorName = lazyregexp.New(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)

// readConnector reads an entry. It returns false if the entry is not the typed form of a connector.
func readConnector(name string, entry json.RawMessage) (c connector, ok bool, err error) {
	if memberOf(entry, []byte("mcp")) == nil {
		return c, false, nil
	}
	c, rest := connector{name: name}, []byte{'{'}
	for k, v := range rawjson.Members(entry) {
		switch string(k) {
		case "mcp":
			c.url = rawjson.String(v)
		case "token":
			if c.token = rawjson.String(v); c.token == "" {
				return c, true, fmt.Errorf("'%s': token is not a text", name)
			}
		case "allowed_tools":
			if json.Unmarshal(v, &c.allowed) != nil || c.allowed == nil {
				return c, true, fmt.Errorf("'%s': allowed_tools is not a list of names", name)
			}
		case "type":
			return c, true, fmt.Errorf("'%s' has both mcp and type; with type, the entry is sent as it is", name)
		default:
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(append(rawjson.AppendString(rest, string(k)), ':'), v...)
		}
	}
	c.rest = append(rest, '}')
	switch {
	case !strings.HasPrefix(c.url, "https://") || len(c.url) == len("https://"):
		return c, true, fmt.Errorf("'%s': mcp is not an https address", name)
	case !connectorName().MatchString(name):
		return c, true, fmt.Errorf("'%s' cannot name a connector: at most 64 letters, digits, '_' and '-', beginning "+
			"with a letter", tenon.Visible(name))
	}
	return c, true, nil
}

// checkConnector reports whether the API of the model has connectors. Sources: the request types of anthropic-sdk-go,
// openai-go and go-genai (mcpServers, not at Vertex); Anthropic's guide, which excludes Vertex and Bedrock.
func (c Config) checkConnector(conn connector) error {
	wire := c.Wire()
	switch {
	case wire == WireScript:
	case wire != WireResponses && wire != WireAnthropic && wire != WireGemini || c.Provider == providerVertex:
		return fmt.Errorf("tenon knows no form of MCP connectors for this API, so '%s' cannot be sent; add the server "+
			"to servers, so that tenon calls it, or use another model", conn.name)
	case wire == WireGemini && conn.allowed != nil:
		return fmt.Errorf("'%s': this API has no list of allowed tools", conn.name)
	}
	return nil
}

// appendConnector appends the declaration of a connector among the tools.
func (c Config) appendConnector(dst []byte, conn connector) []byte {
	var own []byte
	switch c.Wire() {
	case WireAnthropic: // the server itself is in mcp_servers; see AppendServers
		own = rawjson.AppendString([]byte(`{"type":"mcp_toolset","mcp_server_name":`), conn.name)
		if conn.allowed != nil {
			own = append(own, `,"default_config":{"enabled":false},"configs":{`...)
			for i, name := range conn.allowed {
				if i > 0 {
					own = append(own, ',')
				}
				own = append(rawjson.AppendString(own, name), `:{"enabled":true}`...)
			}
			own = append(own, '}')
		}
	case WireGemini:
		own = rawjson.AppendString([]byte(`{"url":`), conn.url)
		if conn.token != "" {
			own = append(own, `,"headers":{"Authorization":`...)
			own = append(rawjson.AppendString(own, "Bearer "+conn.token), '}')
		}
		dst = rawjson.AppendString(append(dst, `{"mcpServers":[{"name":`...), conn.name)
		dst = mergeObjects(append(dst, `,"streamableHttpTransport":`...), append(own, '}'), conn.rest)
		return append(dst, "}]}"...)
	default:
		own = rawjson.AppendString([]byte(`{"type":"mcp","server_label":`), conn.name)
		own = rawjson.AppendString(append(own, `,"server_url":`...), conn.url)
		if conn.token != "" {
			own = rawjson.AppendString(append(own, `,"authorization":`...), conn.token)
		}
		if conn.allowed != nil {
			own = append(own, `,"allowed_tools":`...)
			list, _ := json.Marshal(conn.allowed) // texts always encode
			own = append(own, list...)
		}
		if c.approves() && memberOf(conn.rest, []byte("require_approval")) == nil {
			own = append(own, `,"require_approval":"always"`...)
		}
	}
	return mergeObjects(dst, append(own, '}'), conn.rest)
}

// AppendServers appends the member mcp_servers of Anthropic's API if a request uses connectors.
func (c Config) AppendServers(dst []byte, req *tenon.Request) []byte {
	begun := false
	for _, name := range req.Hosted {
		conn, ok, err := readConnector(name, memberOf(c.Tools, []byte(name)))
		if !ok || err != nil || c.ToolMode == ToolsNone || req.ToolChoice == "none" {
			continue
		}
		if !begun {
			begun, dst = true, append(dst, `,"mcp_servers":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(append(dst, `{"type":"url","name":`...), name)
		dst = rawjson.AppendString(append(dst, `,"url":`...), conn.url)
		if conn.token != "" {
			dst = rawjson.AppendString(append(dst, `,"authorization_token":`...), conn.token)
		}
		dst = append(dst, '}')
	}
	if begun {
		dst = append(dst, ']')
	}
	return dst
}

// approves reports whether the service asks for an approval of the calls of its connectors. Other services with
// OpenAI's API may make the calls at once.
func (c Config) approves() bool {
	return c.Wire() == WireResponses && (c.Provider == "openai" || c.ResolvedQuirks().KeyHeader)
}

// AsksFirst returns the names of the connectors for whose calls the provider asks. The rules decide about each of these
// calls, with its arguments. OpenAI's API asks unless require_approval says otherwise.
func (c Config) AsksFirst() []string {
	var names []string
	for k, v := range rawjson.Members(c.Tools) {
		_, typed, err := readConnector(string(k), json.RawMessage(v))
		mode := memberOf(v, []byte("require_approval"))
		asks := mode == nil || rawjson.String(mode) == "always"
		if err == nil && asks && (c.Wire() == WireScript && typed ||
			c.approves() && (typed || rawjson.String(rawjson.Field(v, "type")) == "mcp")) {
			names = append(names, string(k))
		}
	}
	return names
}

// Connector returns the connector that a provider names in a call by its label. The label of the typed form is the name
// of the entry.
func (c Config) Connector(label, tool string) *tenon.Connector {
	out := &tenon.Connector{Name: label, Tool: tool}
	for k, v := range rawjson.Members(c.Tools) {
		conn, typed, err := readConnector(string(k), json.RawMessage(v))
		switch {
		case typed && err == nil && string(k) == label:
			out.URL = publicURL(conn.url)
		case !typed && rawjson.String(rawjson.Field(v, "server_label")) == label && label != "":
			out.URL = publicURL(rawjson.String(rawjson.Field(v, "server_url")))
			if id := rawjson.String(rawjson.Field(v, "connector_id")); id != "" && out.URL == "" {
				out.URL = id // of a server that the provider runs, such as connector_gmail
			}
		}
	}
	return out
}

// addressKeys are the keys of addresses in the entries of a provider's tools.
var addressKeys = []string{"mcp", "server_url", "url"}

// IsToolSecret reports whether the texts under a key of an entry of models.NAME.tools or agents.NAME.provider_tools are
// secrets: tokens, and headers for servers of connectors.
func IsToolSecret(key string) bool {
	return slices.Contains([]string{"token", "authorization", "authorization_token", "headers"}, key)
}

// ToolSecrets returns the secrets in models.NAME.tools or agents.NAME.provider_tools: tokens and headers for servers of
// connectors, and the passwords and queries of their addresses.
func ToolSecrets(tools json.RawMessage) []tenon.Secret {
	var list []tenon.Secret
	add := func(s string) {
		if s != "" {
			list = append(list, tenon.NewSecret(s))
		}
	}
	for _, entry := range rawjson.Members(tools) {
		for key, v := range rawjson.Members(entry) {
			switch {
			case IsToolSecret(string(key)):
				for t := range rawjson.Strings(v) {
					if t.Value < 0 { // not a key
						add(rawjson.String(v[t.From:t.To]))
					}
				}
			case slices.Contains(addressKeys, string(key)):
				u, err := url.Parse(rawjson.String(v))
				if err != nil {
					continue
				}
				password, _ := u.User.Password()
				add(password)
				for _, values := range u.Query() {
					for _, value := range values {
						add(value)
					}
				}
			}
		}
	}
	return list
}

// publicURL returns an address without what may be secret in it: its user, query and fragment. A digest of the whole
// replaces them, so that two addresses are never the same.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err == nil && u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return address
	}
	sum := sha256.Sum256([]byte(address))
	digest := "#sha256-" + hex.EncodeToString(sum[:6])
	if err != nil {
		return digest
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String() + digest
}

// HostedNames returns the names in models.NAME.tools or agents.NAME.provider_tools in their order. A name of an MCP
// server that the provider calls is followed by its host, as in "wiki at wiki.example".
func HostedNames(tools json.RawMessage) []string {
	var names []string
	for k, v := range rawjson.Members(tools) {
		name := tenon.Visible(string(k))
		for _, key := range addressKeys {
			u, err := url.Parse(rawjson.String(rawjson.Field(v, key)))
			if err == nil && u.Host != "" { // the rest of the address may contain a secret
				name += " at " + tenon.Visible(u.Host)
				break
			}
		}
		names = append(names, name)
	}
	return names
}
