package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/workflow"
)

// checker looks at what goes beyond types: references, files, keys that need or
// exclude each other.
type checker struct {
	*decoder
	c    *Config
	root *node

	templates *policy.Templates // made where the first one is checked
}

// where returns the value at a path, else the key of the entry that it is
// missing from, else the top of the file.
func (k *checker) where(path string) *node {
	if n := k.nodes[path]; n != nil {
		return n
	}
	for path != "" {
		if n := k.keyed[path]; n != nil {
			return n
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return k.root
}

func (k *checker) bad(path, hint, format string, args ...any) {
	k.add(k.where(path), path, fmt.Sprintf(format, args...), hint)
}

func (k *checker) note(path, hint, format string, args ...any) {
	k.warn(k.where(path), path, fmt.Sprintf(format, args...), hint)
}

// has reports whether the file says something at the path.
func (k *checker) has(path string) bool {
	n := k.nodes[path]
	return n != nil && !n.src.profile
}

func (k *checker) run(ctx context.Context) {
	if k.has("version") && k.c.Version != 1 && !k.failedUnder("version") {
		k.bad("version", "", "this tenon reads version 1, not %d", k.c.Version)
	}
	for _, name := range k.order["secrets"] {
		p := "secrets." + name
		k.oneSource(k.nodes[p], place{path: p}, k.c.Secrets[name])
		k.secretFile(k.c.Secrets[name], p)
		k.command(p+".command", k.c.Secrets[name].Command)
	}
	for p, ref := range k.secrets {
		if _, ok := k.c.Secrets[ref.name]; ref.name != "" && !ok {
			// Not its name: it may be the secret itself.
			k.bad(p, k.known("secrets"), "no entry of this name in secrets")
		}
		k.secretFile(ref, p)
		k.command(p+".command", ref.Command)
	}
	for p, n := range k.late {
		for _, m := range secretVariable.FindAllStringSubmatch(n.val, -1) {
			if _, ok := k.c.Secrets[m[1]]; !ok && !k.apart {
				k.bad(p, k.known("secrets"), "no entry '%s' in secrets", m[1])
			}
		}
	}
	for _, name := range k.order["servers"] {
		k.server("servers."+name, name, k.c.Servers[name])
	}
	k.registry(k.c.Registry)
	k.toolTables(ctx)
	k.tools()
	k.policies()
	for _, name := range k.order["models"] {
		k.model("models."+name, name, k.c.Models[name])
		k.fallback("models."+name, name, k.c.Models[name].Fallback)
	}
	for _, name := range k.order["agents"] {
		k.agent("agents."+name, k.c.Agents[name])
	}
	k.serve()
	k.store()
}

// known lists what a reference may name.
func (k *checker) known(kind string) string {
	names := slices.Sorted(slices.Values(k.order[kind]))
	if len(names) == 0 {
		return "the file names no " + kind
	}
	return kind + ": " + strings.Join(names, ", ")
}

var (
	stdioKeys = []string{"command", "args", "cwd", "env", "env_file", "inherit_env", "encoding"}
	httpKeys  = []string{"url", "headers", "auth", "sse_read_timeout", "terminate_on_close"}
)

func (k *checker) server(p, name string, s servers.Config) {
	n := k.nodes[p]
	if n == nil || n.kind != mapNode {
		if n != nil && n.isNull() {
			k.add(k.keyed[p], p, "'command' or 'url' is required", "")
		}
		return
	}
	if slices.Contains(catalog.OwnServers(), name) {
		k.add(k.keyed[p], p, "the name is taken by tenon's own tools", "choose another one")
	}
	k.shaping(p, s)
	k.answers(p, s)
	hasCommand, hasURL := k.has(p+".command"), k.has(p+".url")
	transport, other := s.Transport, []string(nil)
	switch {
	case hasCommand && hasURL:
		later := "command"
		if a, b := k.nodes[p+".command"], k.nodes[p+".url"]; b.line > a.line || b.line == a.line && b.col > a.col {
			later = "url"
		}
		k.bad(p+"."+later, "stdio needs 'command', http needs 'url'", "'command' and 'url' together: a server has one of them")
		return
	case transport == "" && k.has(p+".transport"):
		return // its value was refused
	case transport == "" && hasCommand:
		transport = servers.TransportStdio
	case transport == "" && hasURL:
		transport = s.InferTransport()
	case transport == "":
		k.add(k.keyed[p], p, "'command' or 'url' is required", "")
		return
	}
	if transport == servers.TransportStdio {
		other = httpKeys
		if !hasCommand || s.Command == "" && k.nodes[p+".command"].val == "" && k.nodes[p+".command"].tag == "!!str" {
			k.bad(p+".command", "", "'command' is required for stdio transport")
		}
		if s.IsEnabled() && s.Command != "" {
			k.command(p+".command", []string{s.Command})
		}
		k.files(p, name, s)
		k.noNUL(p+".command", s.Command)
		k.noNUL(p+".cwd", s.Cwd)
		for i, arg := range s.Args {
			k.noNUL(index(p+".args", i), arg)
		}
		if s.Encoding != "" && !servers.IsEncoding(s.Encoding) {
			k.bad(p+".encoding", "some are utf-8, latin-1, utf-16le, windows-1252, shift_jis", "'%s' is not the label of a character encoding", s.Encoding)
		}
	} else {
		other = stdioKeys
		switch transport {
		case servers.TransportWebSocket, servers.TransportJSONRPC:
			other = append(other[:len(other):len(other)], "sse_read_timeout", "terminate_on_close")
		case servers.TransportSSE:
			other = append(other[:len(other):len(other)], "terminate_on_close")
		}
		k.address(p, transport, s, hasURL)
	}
	for _, key := range other {
		if k.has(p + "." + key) {
			k.add(k.keyed[p+"."+key], p+"."+key, fmt.Sprintf("'%s' has no effect for %s transport", key, transport), "")
		}
	}
	k.callers(p, transport, s)
	k.inert(p, transport, s)
	for _, v := range k.order[p+".env"] {
		if strings.ContainsAny(v, "=\x00") || v == "" {
			k.bad(p+".env."+v, "", "not the name of a variable")
		}
		k.noNUL(p+".env."+v, s.Env[v])
		k.literal(p+".env."+v, s.Env[v])
	}
}

// files checks the working directory and reads the env_file of a process.
func (k *checker) files(p, name string, s servers.Config) {
	if !s.IsEnabled() || k.apart {
		return
	}
	if s.Cwd != "" && !folder(s.Cwd) {
		k.bad(p+".cwd", "", "no folder %s", s.Cwd)
	}
	if s.EnvFile == "" {
		return
	}
	b, err := readFile(s.EnvFile, maxBytes)
	if err != nil {
		k.bad(p+".env_file", "", "%s", reason(err))
		return
	}
	env, bad := parseEnv(b)
	if bad > 0 {
		k.bad(p+".env_file", "a line is KEY=VALUE, with quotes closed, or a comment", "%s: line %d cannot be read", s.EnvFile, bad)
	}
	k.c.envs[name] = env
}

// answers checks what a server gets that asks.
func (k *checker) answers(p string, s servers.Config) {
	for i, dir := range s.Roots {
		if s.IsEnabled() && !k.apart && !folder(dir) {
			k.bad(fmt.Sprintf("%s.roots[%d]", p, i), "a root is a folder that the server is told of", "no folder %s", dir)
		}
	}
	if s.Sampling == "" || s.Sampling == servers.AnswerDeny {
		for _, key := range []string{"sampling_model", "sampling_limits"} {
			if k.has(p + "." + key) {
				k.add(k.keyed[p+"."+key], p+"."+key, fmt.Sprintf("'%s' has no effect while 'sampling' is deny", key), "set sampling to ask or allow")
			}
		}
	}
	if _, ok := k.c.Models[s.SamplingModel]; s.SamplingModel != "" && !ok {
		k.bad(p+".sampling_model", k.hintFor(s.SamplingModel, "models"), "no model '%s'", s.SamplingModel)
	}
}

func (k *checker) address(p, transport string, s servers.Config, hasURL bool) {
	credential := s.Auth.Type != "" && s.Auth.Type != servers.AuthNone
	for _, h := range k.order[p+".headers"] {
		hp := p + ".headers." + h
		if !validHeader(h) {
			k.bad(hp, "", "'%s' is not the name of a header", h)
		}
		if strings.ContainsAny(s.Headers[h], "\r\n\x00") {
			k.bad(hp, "", "a header is one line")
		}
		k.literal(hp, s.Headers[h])
		if strings.EqualFold(h, "Authorization") {
			if credential {
				k.note(hp, "remove one of them", "'Authorization' together with 'auth': the header wins")
			}
			credential = true
		}
	}
	k.auth(p+".auth", transport, s.Auth)
	at := p + ".url"
	switch {
	case !hasURL || s.URL == "" && k.nodes[at].tag == "!!str" && k.nodes[at].val == "":
		k.bad(at, "", "'url' is required for %s transport", transport)
		return
	case s.URL == "" || (k.apart || !s.IsEnabled()) && strings.Contains(s.URL, "${"):
		return // refused already, or not resolved
	}
	scheme := "http"
	if transport == servers.TransportWebSocket {
		scheme = "ws"
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Host == "" && (u.Scheme == scheme || u.Scheme == scheme+"s"):
		k.bad(at, "", "not a URL")
	case u.Scheme != scheme && u.Scheme != scheme+"s":
		k.bad(at, "", "'url' must begin with %ss:// or %s:// for %s transport", scheme, scheme, transport)
	case u.Scheme == scheme && !local(u.Hostname()):
		k.graded(k.c.Policy.URLs.RequireHTTPS, at, "", "%s", unencrypted(scheme, credential))
	}
	k.public(at, u)
	if issuer, err := url.Parse(s.Auth.Issuer); err == nil {
		k.public(p+".auth.issuer", issuer)
	}
	if u != nil && u.User != nil {
		k.graded(k.c.Policy.LiteralSecrets, at, "use auth: {type: basic, secret: NAME}", "a literal credential in the file")
	}
}

// public refuses an address that the file itself names where private ones are not allowed.
// What a name leads to is looked at when it is connected to.
func (k *checker) public(at string, u *url.URL) {
	if u != nil && u.Host != "" && !k.c.Policy.URLs.AllowsPrivate() && outbound.NamesPrivate(u) {
		k.bad(at, "policy.urls.allow_private: true allows it", "'%s' is a private address or this machine", u.Hostname())
	}
}

// registry checks where servers are searched.
func (k *checker) registry(r Registry) {
	if !k.has("registry.url") {
		if k.has("registry.secret") {
			k.add(k.keyed["registry.secret"], "registry.secret", "'secret' has no effect without 'url'", "")
		}
		return
	}
	if r.URL == "" || k.apart && strings.Contains(r.URL, "${") {
		return
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		k.bad("registry.url", "", "'url' must begin with https:// or http://")
		return
	}
	k.encrypted("registry.url", "url", u)
}

// encrypted tells of an address that others could listen to, as the policy has it.
func (k *checker) encrypted(path, key string, u *url.URL) {
	if u.Scheme == "http" && !local(u.Hostname()) {
		k.graded(k.c.Policy.URLs.RequireHTTPS, path, "", "'%s' must use https:// (or http:// for localhost)", key)
	}
}

// graded tells of something as the policy has it: off, warn (also "") or error.
func (k *checker) graded(grade, path, hint, format string, args ...any) {
	switch grade {
	case "error":
		k.bad(path, hint, format, args...)
	case "off":
	default:
		k.note(path, hint, format, args...)
	}
}

// command checks that a program may be started.
func (k *checker) command(path string, command []string) {
	if why := k.c.forbidden(command); why != "" {
		k.bad(path, "policy.commands.allow names them ("+k.c.Origin("policy.commands.allow")+")", "%s", why)
	}
}

// literal warns of a value that looks like a token and is written in the file.
func (k *checker) literal(p, expanded string) {
	n := k.nodes[p]
	if n == nil || n.val != expanded || !looksLikeToken(n.val) {
		return
	}
	k.graded(k.c.Policy.LiteralSecrets, p, "put it into a variable and write ${NAME}", "a literal token in the file")
	if k.c.Policy.LiteralSecrets == "off" {
		return
	}
	if f := n.src.path; f != "" {
		if mode, wide := wideMode(f); wide {
			k.note(p, "chmod 600 "+n.src.label, "others can read the file that holds it (mode %04o)", mode)
		}
	}
}

func (k *checker) globs(p string, globs []string) {
	for i, g := range globs {
		if at := index(p, i); k.nodes[at] != nil && k.nodes[at].tag == "!!str" {
			if _, err := path.Match(g, ""); err != nil || g == "" {
				k.bad(at, "* is any text, ? one character, [a-z] a range", "'%s' is not a glob", g)
			}
		}
	}
}

func (k *checker) tools() {
	seen := map[[2]string]string{}
	flows := map[string]*workflow.Workflow{}
	for _, name := range k.order["tools"] {
		p, t := "tools."+name, k.c.Tools[name].WithDefaults(name)
		if t.Kind == tenon.KindAgent {
			k.agentTool(p, t)
			continue
		}
		if t.Kind == tenon.KindHTTP || t.Kind == tenon.KindPrompt {
			k.builtinTool(p, name, t)
			continue
		}
		if t.Kind == tenon.KindWorkflow {
			if w := k.workflowTool(p, name, t); w != nil && t.IsEnabled() {
				flows[name] = w
			}
			continue
		}
		for key, kind := range map[string]string{"request": tenon.KindHTTP, "template": tenon.KindPrompt, "model": tenon.KindPrompt, "path": tenon.KindWorkflow} {
			if k.has(p + "." + key) {
				k.bad(p+"."+key, "write kind: "+kind, "a tool of kind mcp has no '%s'", key)
			}
		}
		if k.has(p + ".agent") {
			k.bad(p+".agent", "write kind: agent", "only a tool of kind agent has an agent")
		}
		switch _, ok := k.c.Servers[t.Server]; {
		case !k.has(p+".server") && t.Enabled != nil && !*t.Enabled: // it may be filled in later
			continue
		case !k.has(p + ".server"):
			if n := k.nodes[p]; n != nil && (n.kind == mapNode || n.isNull()) {
				k.bad(p+".server", k.known("servers"), "'server' is required")
			}
			continue
		case t.Server == "" && k.nodes[p+".server"].tag != "!!str":
			continue
		case !ok:
			k.bad(p+".server", k.hintFor(t.Server, "servers"), "no server '%s'", t.Server)
			continue
		}
		id := [2]string{t.Server, t.RemoteName}
		if other, ok := seen[id]; ok {
			k.bad(p, "one tool has one entry", "covers the same tool as tools.%s: '%s' of server '%s'", other, t.RemoteName, t.Server)
			continue
		}
		seen[id] = name
		k.tool(p, name, t)
		a := t.Annotations
		if a.ReadOnly != nil && *a.ReadOnly && a.Destructive != nil && *a.Destructive {
			k.bad(p+".annotations.destructive", "", "a tool cannot be read_only and destructive")
		}
	}
	if circle := workflow.Circle(flows); circle != nil {
		k.bad("tools."+circle[0]+".path", "write when: … at one of the steps that call", "the workflow calls itself without an end: %s", strings.Join(circle, " -> "))
	}
}

// agentTool checks a tool that is another agent.
func (k *checker) agentTool(p string, t catalog.Tool) {
	if _, ok := k.c.Agents[t.RemoteName]; !ok {
		at := p + ".agent"
		if !k.has(at) {
			at = p
		}
		k.bad(at, k.hintFor(t.RemoteName, "agents"), "no agent '%s'", t.RemoteName)
	}
	for _, key := range []string{"server", "remote_name", "arguments", "schema"} {
		if k.has(p + "." + key) {
			k.bad(p+"."+key, "remove it", "a tool of kind agent has no '%s': it takes a message", key)
		}
	}
}

// hintFor is the list of what a reference may name.
func (k *checker) hintFor(name, kind string) string {
	if near := tenon.Nearest(name, k.order[kind]); near != "" && len(k.order[kind]) > 8 {
		return "did you mean '" + near + "'?"
	}
	return k.known(kind)
}

func (k *checker) model(p, name string, m model.Config) {
	n := k.nodes[p]
	if n == nil || n.kind != mapNode && !n.isNull() {
		return
	}
	if k.has(p+".provider") && m.Provider == "" { // refused already
		return
	}
	for _, h := range k.order[p+".headers"] {
		if !validHeader(h) {
			k.bad(p+".headers."+h, "", "'%s' is not the name of a header", h)
		}
		k.literal(p+".headers."+h, m.Headers[h])
	}
	if m.Provider == "script" {
		for _, key := range []string{"model", "base_url", "api_key", "headers"} {
			if k.has(p + "." + key) {
				k.add(k.keyed[p+"."+key], p+"."+key, fmt.Sprintf("'%s' has no effect for provider script", key), "")
			}
		}
		if _, err := os.Stat(m.Path); m.Path != "" && !k.apart && errors.Is(err, fs.ErrNotExist) {
			k.bad(p+".path", "", "no file %s", m.Path)
		}
	} else if m.Provider != "" && k.has(p+".path") {
		k.add(k.keyed[p+".path"], p+".path", fmt.Sprintf("'path' has no effect for provider %s", m.Provider), "")
	}
	if k.failedUnder(p) {
		return
	}
	m.Name = name
	if k.apart && strings.Contains(m.BaseURL, "${") {
		return
	}
	if err := m.Check(); err != nil {
		at, message, ok := strings.Cut(err.Error(), ": ")
		if !ok || !strings.HasPrefix(at, p) {
			at, message = p, err.Error()
		}
		k.bad(at, "", "%s", message)
		return
	}
	u, err := url.Parse(m.BaseURL)
	switch grade := k.c.Policy.URLs.RequireHTTPS; {
	case err != nil || u.Scheme != "http" || local(u.Hostname()):
	case k.has(p + ".api_key"):
		k.graded(grade, p+".base_url", "", "'base_url' must use https:// (or http:// for localhost): a credential would go over it unencrypted")
	case grade == "error": // a model on one's own network is no cause for a warning
		k.encrypted(p+".base_url", "base_url", u)
	}
}

func (k *checker) failedUnder(p string) bool {
	return slices.ContainsFunc(k.errs, func(e Error) bool { return e.Path == p || strings.HasPrefix(e.Path, p+".") })
}

// fallback checks the models that are asked in the place of one.
func (k *checker) fallback(p, name string, list []string) {
	for i, m := range list {
		_, entry := k.c.Models[m]
		provider, id, _ := strings.Cut(m, "/")
		_, known := model.Lookup(provider)
		at := index(p+".fallback", i)
		switch {
		case m == name:
			k.bad(at, "", "a model cannot stand in for itself")
		case slices.Contains(list[:i], m):
			k.bad(at, "", "'%s' stands there twice", m)
		case !entry && (!known || id == ""):
			k.bad(at, k.hintFor(m, "models"), "no model '%s'", m)
		}
	}
}

func (k *checker) agent(p string, a agent.Config) {
	if _, ok := k.c.Models[a.Model]; a.Model != "" && !ok {
		k.bad(p+".model", k.hintFor(a.Model, "models"), "no model '%s'", a.Model)
	}
	for i, file := range a.DataInputs {
		if at := index(p+".data_inputs", i); !k.failedUnder(at) {
			if st, err := os.Stat(file); err != nil {
				k.bad(at, "", "%s", reason(err))
			} else if st.IsDir() {
				k.bad(at, "name an Arrow file", "%s is a folder", file)
			}
		}
	}
	if k.has(p+".instructions.text") && k.has(p+".instructions.file") {
		k.bad(p+".instructions.file", "", "'text' and 'file' together: instructions have one of them")
	} else if f := a.Instructions.File; f != "" && !k.apart {
		if _, err := readFile(f, maxBytes); err != nil {
			k.bad(p+".instructions.file", "", "%s", reason(err))
		}
	}
	k.responseFormat(p+".response_format", a.ResponseFormat)
	if a.Prompt != "" && !k.apart && a.Prompt != agent.PromptDefault && a.Prompt != agent.PromptTrustGraph {
		if _, err := template(a.Prompt); err != nil {
			k.bad(p+".prompt", "default, trustgraph, or a file with a text/template", "%s", reason(err))
		}
	}
	if m := a.Compaction.Model; m != "" {
		if _, ok := k.c.Models[m]; !ok {
			k.bad(p+".compaction.model", k.hintFor(m, "models"), "no model '%s'", m)
		}
	}
	for i, to := range a.Handoffs {
		if _, ok := k.c.Agents[to]; !ok {
			k.bad(index(p+".handoffs", i), k.hintFor(to, "agents"), "no agent '%s'", to)
		}
	}
	k.globs(p+".tools.include", a.Tools.Include)
	k.globs(p+".tools.exclude", a.Tools.Exclude)
}

// local reports whether a host is this machine: decided on the parsed host,
// never by prefix.
func local(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// validHeader reports whether s is a token of RFC 9110, section 5.6.2.
func validHeader(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) < 0
}
