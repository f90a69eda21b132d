package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/outbound"
	"github.com/tenonhq/tenon/servers"
)

var (
	stdioKeys = []string{"command", "args", "cwd", "env", "env_file", "inherit_env", "encoding"}
	httpKeys  = []string{"url", "headers", "auth", "sse_read_timeout", "terminate_on_close"}
)

func (k *checker) server(p, name string, s servers.Config) {
	n := k.nodes[p]
	if n == nil || n.Kind != tree.Map {
		if n != nil && n.IsNull() {
			k.Add(k.keyed[p], p, "'command' or 'url' is required", "")
		}
		return
	}
	if slices.Contains(catalog.OwnServers(), name) {
		k.Add(k.keyed[p], p, "the name is taken by tenon's own tools", "choose another one")
	}
	k.shaping(p, s)
	k.answers(p, s)
	hasCommand, hasURL := k.has(p+".command"), k.has(p+".url")
	transport, other := s.Transport, []string(nil)
	switch {
	case hasCommand && hasURL:
		later := "command"
		if a, b := k.nodes[p+".command"], k.nodes[p+".url"]; b.Line > a.Line || b.Line == a.Line && b.Col > a.Col {
			later = "url"
		}
		k.bad(p+"."+later, "stdio needs 'command', http needs 'url'", "'command' and 'url' together: a server has "+
			"one of them")
		return
	case transport == "" && k.has(p+".transport"):
		return // the decoder has refused its value
	case transport == "" && hasCommand:
		transport = servers.TransportStdio
	case transport == "" && hasURL:
		transport = s.InferTransport()
	case transport == "":
		k.Add(k.keyed[p], p, "'command' or 'url' is required", "")
		return
	}
	if transport == servers.TransportStdio {
		other = httpKeys
		k.process(p, name, s, hasCommand)
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
			k.Add(k.keyed[p+"."+key], p+"."+key, fmt.Sprintf("'%s' has no effect for %s transport", key, transport), "")
		}
	}
	k.callers(p, transport, s)
	k.inert(p, transport, s)
	k.guarded(p, s)
	k.literalArgs(p + ".args")
	for _, v := range k.order[p+".env"] {
		if strings.ContainsAny(v, "=\x00") || v == "" {
			k.bad(p+".env."+v, "", "not the name of a variable")
		}
		k.noNUL(p+".env."+v, s.Env[v])
		k.literal(p+".env."+v, s.Env[v])
	}
	if n := k.nodes[p+".config"]; n != nil {
		k.literalsIn(n, place{path: p + ".config"})
	}
}

// process checks the keys of a server that is a local process.
func (k *checker) process(p, name string, s servers.Config, hasCommand bool) {
	if !hasCommand || s.Command == "" && k.nodes[p+".command"].Val == "" && k.nodes[p+".command"].Tag == "!!str" {
		k.bad(p+".command", "", "'command' is required for stdio transport")
	}
	if s.IsEnabled() && s.Command != "" {
		k.command(p+".command", []string{s.Command})
		k.oneProgram(p+".command", s)
	}
	k.files(p, name, s)
	k.noNUL(p+".command", s.Command)
	k.noNUL(p+".cwd", s.Cwd)
	for i, arg := range s.Args {
		k.noNUL(tree.Index(p+".args", i), arg)
	}
	if s.Encoding != "" && !servers.IsEncoding(s.Encoding) {
		k.bad(p+".encoding", "some are utf-8, latin-1, utf-16le, windows-1252, shift_jis",
			"'%s' is not the label of a character encoding", s.Encoding)
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
	b, err := k.c.files.read(s.EnvFile, tree.MaxBytes)
	if err != nil {
		k.bad(p+".env_file", "", "%s", reason(err))
		return
	}
	vars := k.varsOf(k.nodes[p+".env_file"])
	env := parseEnv(b, false, vars.Get)
	if env.bad > 0 {
		k.bad(p+".env_file", "a line is KEY=VALUE, with quotes closed, or a comment", "%s: line %d cannot be read",
			s.EnvFile, env.bad)
	}
	for _, u := range env.unset {
		if !vars.Lax {
			k.bad(p+".env_file", fmt.Sprintf("set it, or write ${%s:-default}", u.name), "%s: line %d: %s", s.EnvFile,
				u.line, u.message())
		}
	}
	k.c.envs[name] = env.values
	if k.c.envTakes == nil {
		k.c.envTakes = map[string][]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(env.takes)) {
		k.c.envTakes[name] = append(k.c.envTakes[name], vars.Behind(env.takes[key])...)
	}
}

// answers checks the settings for the server's questions: roots, elicitation and sampling.
func (k *checker) answers(p string, s servers.Config) {
	for i, dir := range s.Roots {
		if s.IsEnabled() && !k.apart && !k.typed && !folder(dir) { // a program can create the folder later
			k.bad(fmt.Sprintf("%s.roots[%d]", p, i), "a root is a folder that the server may list", "no folder %s",
				dir)
		}
	}
	if s.Sampling == "" || s.Sampling == servers.AnswerDeny {
		for _, key := range []string{"sampling_model", "sampling_limits"} {
			if k.has(p + "." + key) {
				k.Add(k.keyed[p+"."+key], p+"."+key, fmt.Sprintf("'%s' has no effect while 'sampling' is deny", key),
					"set sampling to ask or allow")
			}
		}
	}
	if _, ok := k.c.Models[s.SamplingModel]; s.SamplingModel != "" && !ok {
		k.noReference(p+".sampling_model", "models", "model", s.SamplingModel)
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
	case !hasURL || s.URL == "" && k.nodes[at].Tag == "!!str" && k.nodes[at].Val == "":
		k.bad(at, "", "'url' is required for %s transport", transport)
		return
	case s.URL == "" || (k.apart || !s.IsEnabled()) && strings.Contains(s.URL, "${"):
		return // refused by another check, or not resolved
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
	case !HasPlainHost(u):
		k.bad(at, "write the host as xn--…", "the host is not written in ASCII: it has several spellings, and rules "+
			"could be about another one")
	case !validPort(u):
		k.bad(at, "ports are 1 to 65535", "there is no port %s", u.Port())
		return
	case u.Scheme == scheme && !local(u.Hostname()):
		k.graded(k.c.Policy.URLs.RequireHTTPS, at, "", "%s", unencrypted(scheme, credential))
	}
	k.public(at, u)
	if issuer, err := url.Parse(s.Auth.Issuer); err == nil {
		k.public(p+".auth.issuer", issuer)
	}
	if u != nil && u.User != nil && !k.typed && writesCredential(k.nodes[at]) {
		k.graded(k.c.Policy.LiteralSecrets, at, "use auth: {type: basic, secret: NAME}", literalCredential)
	}
	if n := k.nodes[at]; n != nil && !k.typed && slices.ContainsFunc(servers.SecretPlaces(n.Val),
		func(s servers.SecretPlace) bool { return strings.ContainsAny(n.Val[:s.From], "?#") }) {
		k.writtenToken(at, n)
	}
}

// writesCredential reports whether the credential before the host of a URL is written in the file, at least in part. A
// name whose password is a variable is none.
func writesCredential(n *tree.Node) bool {
	if n == nil {
		return true
	}
	written := n.Val
	for {
		before, rest, ok := strings.Cut(written, "${")
		_, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			break
		}
		written = before + after
	}
	_, written, _ = strings.Cut(written, "://")
	if i := strings.IndexAny(written, "/?#"); i >= 0 {
		written = written[:i]
	}
	credential := written[:max(0, strings.LastIndexByte(written, '@'))]
	name, password, both := strings.Cut(credential, ":")
	return password != "" || !both && name != "" || !strings.Contains(n.Val, "${")
}

// validPort reports whether a connection to the port of a URL is possible.
func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return true
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && n > 0
}

// oneProgram refuses a command that contains its arguments, since no program has such a name. It allows a path with a
// space if that file exists.
func (k *checker) oneProgram(path string, s servers.Config) {
	words := strings.Fields(s.Command)
	if len(words) < 2 || k.apart && strings.Contains(s.Command, "${") {
		return
	}
	dir := s.Cwd
	if dir == "" {
		dir = k.nodes[path].Src.Dir
	}
	exists := func(name string) bool {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		_, err := os.Stat(name)
		return err == nil
	}
	if strings.ContainsAny(words[0], `/\`) && (exists(s.Command) || !exists(words[0])) {
		return
	}
	if _, err := exec.LookPath(s.Command); err == nil {
		return
	}
	args := make([]string, len(words)-1)
	for i, w := range words[1:] {
		args[i] = quoted(w)
	}
	k.bad(path, fmt.Sprintf("write command: %s and args: [%s]", words[0], strings.Join(args, ", ")),
		"'%s' is a command with arguments, not the name of a program", s.Command)
}

// public reports a private address in the file if the policy does not allow private addresses. Host names, and the
// addresses of a Go program, are checked at connect.
func (k *checker) public(at string, u *url.URL) {
	if u != nil && u.Host != "" && !k.typed && !k.c.Policy.URLs.AllowsPrivate() && outbound.NamesPrivate(u) {
		k.bad(at, "policy.urls.allow_private: true allows it", "'%s' is a private address or this machine",
			u.Hostname())
	}
}

// registry checks the settings of the registry.
func (k *checker) registry(r Registry) {
	if !k.has("registry.url") {
		if k.has("registry.secret") {
			k.Add(k.keyed["registry.secret"], "registry.secret", "'secret' has no effect without 'url'", "")
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
	if !validPort(u) {
		k.bad("registry.url", "ports are 1 to 65535", "there is no port %s", u.Port())
		return
	}
	k.encrypted("registry.url", "url", u)
}

// encrypted reports an unencrypted address, with the severity that the policy sets.
func (k *checker) encrypted(path, key string, u *url.URL) {
	if u.Scheme == "http" && !local(u.Hostname()) {
		k.graded(k.c.Policy.URLs.RequireHTTPS, path, "", "'%s' must use https:// (or http:// for localhost)", key)
	}
}

// graded reports a finding with the severity that the policy sets: off, warn (also "") or error.
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

// The warnings about tokens in a file.
const (
	literalToken      = "a literal token in the file"
	literalCredential = "a literal credential in the file"
	wideToken         = "others can read the file that holds it"
)
