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
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/protect"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/workflow"
)

// checker checks more than types: references, files, and keys that require or exclude each other.
type checker struct {
	*decoder
	c    *Config
	root *tree.Node

	lenient bool // an unknown name in a rule is a warning, because a project may define it
	silent  bool // an unknown name in a rule is not reported, because a trusted layer is read by itself

	paths     *protect.Paths    // tenon's own files
	templates *policy.Templates // created at the first use
	names     *string           // see differ
	renamed   map[string]string // see renamingTools; without tools of tables
}

// where returns the value at a path, or else the key of the entry that should contain it, or else the top of the
// file.
func (k *checker) where(path string) *tree.Node {
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
	k.Add(k.where(path), path, fmt.Sprintf(format, args...), hint)
}

func (k *checker) note(path, hint, format string, args ...any) {
	k.Warn(k.where(path), path, fmt.Sprintf(format, args...), hint)
}

// has reports whether the file itself, and not only its profile, sets the value at a path.
func (k *checker) has(path string) bool {
	n := k.nodes[path]
	return n != nil && !n.Src.Profile
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
		if _, ok := k.c.secretFor(ref.name, ref.from); ref.name != "" && !ok {
			// Do not name it: the text may be the secret itself.
			hint := k.known("secrets")
			if strings.HasSuffix(p, ".api_key") {
				ref := "{env: VARIABLE}"
				if k.where(p).Src.Program != "" {
					ref = "${VARIABLE}"
				}
				hint += "; if this is the key itself, put it into a variable and write api_key: " + ref
			}
			k.bad(p, hint, "no entry of this name in secrets")
		}
		k.secretFile(ref, p)
		k.command(p+".command", ref.Command)
	}
	for p, n := range k.late {
		for _, secret := range secretsIn(n.Val) {
			if _, ok := k.c.secretFor(secret, n.Src); !ok && !k.apart {
				k.bad(p, k.known("secrets"), "no entry '%s' in secrets", secret)
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
	for _, name := range k.order["schedules"] {
		k.schedule("schedules."+name, k.c.Schedules[name])
	}
	k.groupsAndStates()
	k.embeddings()
	k.serve()
	k.gateway()
	k.store()
	k.engine()
	k.trust()
}

// embeddings checks tool_search.embeddings: an entry of models, or PROVIDER/NAME.
func (k *checker) embeddings() {
	const at = "tool_search.embeddings"
	name := k.c.ToolSearch.Embeddings
	if _, ok := k.c.Models[name]; ok || name == "" {
		return
	}
	provider, id, ok := strings.Cut(name, "/")
	if !ok {
		k.noReference(at, "models", "model", name)
		return
	}
	if _, known := model.Lookup(provider); !known || id == "" {
		k.bad(at, "name an entry of models, or PROVIDER/NAME with a provider of "+
			strings.Join(model.ProviderNames(), ", "), "no model '%s'", name)
	}
}

// known returns a hint that lists the names to which a reference can refer.
func (k *checker) known(kind string) string {
	names := slices.Sorted(slices.Values(k.order[kind]))
	if len(names) == 0 {
		return "the file names no " + kind
	}
	return kind + ": " + strings.Join(names, ", ")
}

func (k *checker) globs(p string, globs []string) {
	for i, g := range globs {
		if at := tree.Index(p, i); k.nodes[at] != nil && k.nodes[at].Tag == "!!str" {
			if _, err := path.Match(g, ""); err != nil || g == "" {
				k.bad(at, "* is any text, ? one character, [a-z] a range", "'%s' is not a glob", g)
			}
		}
	}
}

func (k *checker) tools() {
	seen, replaced := map[[2]string]string{}, []string{}
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
		for key, kind := range map[string]string{"request": tenon.KindHTTP, "template": tenon.KindPrompt,
			"model": tenon.KindPrompt, "path": tenon.KindWorkflow} {
			if k.has(p + "." + key) {
				k.bad(p+"."+key, "write kind: "+kind, "a tool of kind mcp has no '%s'", key)
			}
		}
		if k.has(p + ".agent") {
			k.bad(p+".agent", "write kind: agent", "only a tool of kind agent has an agent")
		}
		switch _, ok := k.c.Servers[t.Server]; {
		case !k.has(p+".server") && t.Enabled != nil && !*t.Enabled: // a disabled tool needs no server yet
			continue
		case !k.has(p + ".server"):
			if n := k.nodes[p]; n != nil && (n.Kind == tree.Map || n.IsNull()) {
				k.bad(p+".server", k.known("servers"), "'server' is required")
			}
			continue
		case t.Server == "" && k.nodes[p+".server"].Tag != "!!str":
			continue
		case !ok:
			k.bad(p+".server", k.hintFor(t.Server, "servers"), "no server '%s'", t.Server)
			continue
		}
		id := [2]string{t.Server, t.RemoteName}
		if other, ok := seen[id]; ok && k.c.Layer(p).Rank() < k.c.Layer("tools."+other).Rank() {
			k.replacedTool(name, other)
			replaced = append(replaced, name)
			continue
		} else if ok {
			k.bad(p, "one tool has one entry", "covers the same tool as tools.%s: '%s' of server '%s'", other,
				t.RemoteName, t.Server)
			continue
		}
		seen[id] = name
		k.tool(p, name, t)
		a := t.Annotations
		if a.ReadOnly != nil && *a.ReadOnly && a.Destructive != nil && *a.Destructive {
			k.bad(p+".annotations.destructive", "", "a tool cannot be read_only and destructive")
		}
	}
	for _, name := range replaced {
		delete(k.c.Tools, name)
	}
	if circle := workflow.Circle(flows); circle != nil {
		k.bad("tools."+circle[0]+".path", "write when: … at one of the steps that call",
			"the workflow calls itself without an end: %s", strings.Join(circle, " -> "))
	}
}

// agentTool checks a tool that is another agent.
func (k *checker) agentTool(p string, t catalog.Tool) {
	if _, ok := k.c.Agents[t.RemoteName]; !ok {
		at := p + ".agent"
		if !k.has(at) {
			at = p
		}
		k.noReference(at, "agents", "agent", t.RemoteName)
	}
	for _, key := range []string{"server", "remote_name", "arguments", "schema"} {
		if k.has(p + "." + key) {
			k.bad(p+"."+key, "remove it", "a tool of kind agent has no '%s': it takes a message", key)
		}
	}
}

// hintFor returns the most similar known name as a hint if there are many names, and otherwise lists them.
func (k *checker) hintFor(name, kind string) string {
	if near := tenon.Nearest(name, k.order[kind]); near != "" && len(k.order[kind]) > 8 {
		return "did you mean '" + near + "'?"
	}
	return k.known(kind)
}

func (k *checker) model(p, name string, m model.Config) {
	n := k.nodes[p]
	if n == nil || n.Kind != tree.Map && !n.IsNull() {
		return
	}
	if k.has(p+".provider") && m.Provider == "" { // the decoder has refused the value
		return
	}
	for _, h := range k.order[p+".headers"] {
		if !validHeader(h) {
			k.bad(p+".headers."+h, "", "'%s' is not the name of a header", h)
		}
		k.literal(p+".headers."+h, m.Headers[h])
	}
	k.providerTokens(p + ".tools")
	if m.Provider == "script" {
		for _, key := range []string{"model", "base_url", "api_key", "headers"} {
			if k.has(p + "." + key) {
				k.Add(k.keyed[p+"."+key], p+"."+key, fmt.Sprintf("'%s' has no effect for provider script", key), "")
			}
		}
		if _, err := os.Stat(m.Path); m.Path != "" && !k.apart && errors.Is(err, fs.ErrNotExist) {
			k.bad(p+".path", "", "no file %s", m.Path)
		}
	} else if m.Provider != "" && k.has(p+".path") {
		k.Add(k.keyed[p+".path"], p+".path", fmt.Sprintf("'path' has no effect for provider %s", m.Provider), "")
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
	case err == nil && !validPort(u):
		k.bad(p+".base_url", "ports are 1 to 65535", "there is no port %s", u.Port())
	case err != nil || u.Scheme != "http" || local(u.Hostname()):
	case k.has(p + ".api_key"):
		k.graded(grade, p+".base_url", "", "'base_url' must use https:// (or http:// for localhost): a credential "+
			"would go over it unencrypted")
	case grade == "error": // without a key, http is an error or allowed, but no warning
		k.encrypted(p+".base_url", "base_url", u)
	}
}

func (k *checker) failedUnder(p string) bool {
	return slices.ContainsFunc(k.Errs, func(e Error) bool { return e.Path == p || strings.HasPrefix(e.Path, p+".") })
}

// fallback checks the models that are used when the model fails.
func (k *checker) fallback(p, name string, list []string) {
	for i, m := range list {
		_, entry := k.c.Models[m]
		provider, id, _ := strings.Cut(m, "/")
		_, known := model.Lookup(provider)
		at := tree.Index(p+".fallback", i)
		switch {
		case m == name:
			k.bad(at, "", "a model cannot be its own fallback")
		case slices.Contains(list[:i], m):
			k.bad(at, "", "'%s' is listed twice", m)
		case !entry && (!known || id == ""):
			k.noReference(at, "models", "model", m)
		}
	}
}

func (k *checker) agent(p string, a agent.Config) {
	if _, ok := k.c.Models[a.Model]; a.Model != "" && !ok {
		k.noReference(p+".model", "models", "model", a.Model)
	}
	for i, file := range a.DataInputs {
		if at := tree.Index(p+".data_inputs", i); !k.failedUnder(at) {
			if st, err := os.Stat(file); err != nil {
				k.bad(at, "", "%s", reason(err))
			} else if st.IsDir() {
				k.bad(at, "name an Arrow file", "%s is a folder", file)
			}
		}
	}
	if n := k.nodes[p+".instructions"]; n != nil && n.Kind == tree.Map && len(n.Keys) == 0 {
		k.bad(p+".instructions", "write 'text' or 'file', or remove the key", "the instructions are empty")
	}
	if k.has(p+".instructions.text") && k.has(p+".instructions.file") {
		k.bad(p+".instructions.file", "", "'text' and 'file' together: instructions have one of them")
	} else if f := a.Instructions.File; f != "" && !k.apart {
		if _, err := k.c.files.read(f, tree.MaxBytes); err != nil {
			k.bad(p+".instructions.file", "", "%s", reason(err))
		}
	}
	k.responseFormat(p+".response_format", a.ResponseFormat)
	k.agentModel(p, a)
	if a.Prompt != "" && !k.apart && a.Prompt != agent.PromptDefault && a.Prompt != agent.PromptTrustGraph {
		if _, err := template(k.c.files, a.Prompt); err != nil {
			k.bad(p+".prompt", "default, trustgraph, or a file with a template", "%s", reason(err))
		}
	}
	if m := a.Compaction.Model; m != "" {
		if _, ok := k.c.Models[m]; !ok {
			k.noReference(p+".compaction.model", "models", "model", m)
		}
	}
	for i, to := range a.Handoffs {
		if _, ok := k.c.Agents[to]; !ok {
			k.noReference(tree.Index(p+".handoffs", i), "agents", "agent", to)
		}
	}
	k.globs(p+".tools.include", a.Tools.Include)
	k.globs(p+".tools.exclude", a.Tools.Exclude)
	k.movable(p+".tools.include", a.Tools.Include)
	k.movable(p+".tools.exclude", a.Tools.Exclude)
}

// local reports whether a host is this machine. It parses the host and does not compare prefixes.
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
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) < 0
}
