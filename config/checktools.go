package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/workflow"
)

// builtinTool checks a tool of kind http or prompt.
func (k *checker) builtinTool(p, name string, t catalog.Tool) {
	foreign := map[string][]string{
		tenon.KindHTTP:   {"server", "remote_name", "agent", "template", "model", "path"},
		tenon.KindPrompt: {"server", "remote_name", "agent", "request", "path"},
	}
	for _, key := range foreign[t.Kind] {
		if k.has(p + "." + key) {
			k.bad(p+"."+key, "remove it", "a tool of kind %s has no '%s'", t.Kind, key)
		}
	}
	if k.has(p + ".arguments_mode") {
		k.bad(p+".arguments_mode", "remove it", "a tool of kind %s has no server, so it has no "+
			"discovered schema", t.Kind)
	}
	k.tool(p, name, t)
	if a := t.Annotations; a.ReadOnly != nil && *a.ReadOnly && a.Destructive != nil && *a.Destructive {
		k.bad(p+".annotations.destructive", "", "a tool cannot be read_only and destructive")
	}
	if t.Description == "" && !k.failedUnder(p+".description") {
		k.note(p, "write a description", "the tool has no description: a model cannot know what it does")
	}
	if k.templates == nil {
		var err error
		if k.templates, err = policy.NewTemplates(); err != nil {
			k.bad(p, "", "%s", err)
			return
		}
	}
	if t.Kind == tenon.KindPrompt {
		if t.Template == "" && !k.failedUnder(p+".template") {
			k.bad(p+".template", "", "'template' is required")
		}
		if _, ok := k.c.Models[t.Model]; t.Model != "" && !ok && !strings.Contains(t.Model, "/") &&
			!strings.HasPrefix(t.Model, "script:") {
			k.noReference(p+".model", "models", "model", t.Model)
		}
		k.template(p+".template", t.Template, false)
		return
	}
	k.request(p+".request", t.Request)
}

// request checks the request of a tool of kind http.
func (k *checker) request(p string, r catalog.Request) {
	if r.URL == "" {
		if !k.failedUnder(p + ".url") {
			k.bad(p+".url", "", "'url' is required")
		}
	} else if c := k.template(p+".url", r.URL, false); c != nil {
		fixed, whole := c.Fixed()
		if err := CheckFixed(fixed, whole); err != "" {
			k.bad(p+".url", "such as https://example.com/search?q={{ args.q }}", "%s", err)
		} else if u, err := url.Parse(fixed); err == nil {
			k.public(p+".url", u)
			k.encrypted(p+".url", "url", u)
		}
		k.literal(p+".url", r.URL)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		at := p + ".headers." + name
		if !catalog.IsHeader(name) {
			k.bad(at, "", "this is no name of a header")
		}
		k.literal(at, r.Headers[name])
		c := k.template(at, r.Headers[name], true)
		if c == nil {
			continue
		}
		for _, s := range c.Secrets() {
			if _, ok := k.c.secretFor(s, k.where(at).Src); !ok {
				k.bad(at, k.known("secrets"), "no entry of this name in secrets: '%s'", s)
			}
		}
	}
	if r.AllowPrivate && !k.c.Policy.URLs.AllowsPrivate() {
		k.bad(p+".allow_private", "", "has no effect: policy.urls.allow_private is false")
	}
	k.template(p+".body", r.Body, false)
	if n := k.nodes[p+".body"]; n != nil && !k.typed && len(literalParts(r.Body)) > 0 {
		k.writtenToken(p+".body", n, "a body takes no secret: send it in a header, such as Authorization: "+
			"'Bearer {{ secrets.NAME }}'")
	}
	if r.Body != "" && (r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodHead) {
		k.bad(p+".body", "write method: POST", "a request of method %s has no body", cmp.Or(r.Method, http.MethodGet))
	}
}

// CheckFixed returns what is wrong with the part of a URL before its first expression. It returns "" if this part
// contains the whole scheme, host and port, so that an expression cannot change them.
func CheckFixed(fixed string, whole bool) string {
	scheme, rest, ok := strings.Cut(fixed, "://")
	host, _, inPath := cutAny(rest, "/?#")
	switch {
	case !ok || scheme != "http" && scheme != "https":
		return "must begin with http:// or https://"
	case host == "" || !inPath && !whole:
		return "scheme, host and port must be literal; expressions may only follow them"
	case strings.Contains(host, "@"):
		return "a user in the address; write a header, such as Authorization: 'Bearer {{ secrets.NAME }}'"
	}
	u, err := url.Parse(scheme + "://" + host)
	switch {
	case err != nil:
		return "the host cannot be read"
	case !HasPlainHost(u):
		return "the host is not written in ASCII: write it as xn--…"
	}
	return ""
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i:], true
	}
	return s, "", false
}

// template compiles a text with expressions. If that fails, it reports the error and returns nil.
func (k *checker) template(p, text string, secrets bool) *policy.Template {
	c, err := k.templates.Compile(text, secrets)
	if err != nil {
		k.bad(p, "", "%s", strings.TrimPrefix(err.Error(), "policy: "))
		return nil
	}
	return c
}

// workflowTool checks a tool of kind workflow together with its file. It returns the workflow, or nil if the file is
// not valid.
func (k *checker) workflowTool(p, name string, t catalog.Tool) *workflow.Workflow {
	for _, key := range []string{"server", "remote_name", "agent", "template", "model", "request"} {
		if k.has(p + "." + key) {
			k.bad(p+"."+key, "remove it", "a tool of kind workflow has no '%s'", key)
		}
	}
	for _, key := range []string{"arguments", "schema", "arguments_mode"} {
		if k.has(p + "." + key) {
			k.bad(p+"."+key, "write it under parameters of the workflow",
				"the arguments of a workflow are declared in its file")
		}
	}
	k.tool(p, name, t)
	if t.Path == "" {
		if !k.failedUnder(p + ".path") {
			k.bad(p+".path", "", "'path' is required")
		}
		return nil
	}
	r, err := k.readFlow(t.Path)
	if err != nil {
		text := err.Error()
		var wrong Errors
		if errors.As(err, &wrong) { // report only one: tenon workflows validate prints all mistakes
			first := wrong[0]
			first.Hint = ""
			text = first.Error()
			if len(wrong) > 1 {
				text += fmt.Sprintf("; and %d more", len(wrong)-1)
			}
		}
		k.bad(p+".path", "tenon workflows validate "+t.Path, "%s", text)
		return nil
	}
	if k.c.flowed != nil {
		k.c.flowed[t.Path] = r
	}
	if !k.apart { // another layer may define the agents
		k.stepAgents(p+".path", t.Path, r.w)
	}
	return r.w
}

// stepAgents checks that the agents in the steps of a workflow are configured.
func (k *checker) stepAgents(at, path string, w *workflow.Workflow) {
	for _, s := range w.Steps {
		if _, ok := k.c.Agents[s.Agent]; ok || s.Agent == "" || s.Agent == "default" && len(k.c.Agents) == 0 {
			continue
		}
		k.bad(at, k.hintFor(s.Agent, "agents"), "step '%s' of %s asks an agent that is not configured: '%s'",
			s.ID, path, s.Agent)
	}
}

// readFlow reads a workflow, or returns the one that the running configuration has already read.
func (k *checker) readFlow(path string) (readWorkflowFile, error) {
	if k.c.held != nil {
		if r, ok := k.c.held.flowed[path]; ok {
			return r, nil
		}
	}
	return readWorkflow(path, k.c.planned)
}

// responseFormat checks the form of an agent's answers.
func (k *checker) responseFormat(p string, f agent.ResponseFormat) {
	schema, at := f.Schema, p+".schema"
	switch {
	case k.has(p+".schema") && k.has(p+".file"):
		k.bad(p+".file", "", "'schema' and 'file' together: an answer has one schema")
		return
	case f.File != "" && k.apart:
		return
	case f.File != "":
		var err error
		if schema, err = readSchema(k.c.files, f.File); err != nil {
			k.bad(p+".file", "", "%s", err)
			return
		}
		at = p + ".file"
	}
	if len(schema) == 0 {
		return
	}
	if _, err := catalog.NewValueSchema(schema); err != nil {
		k.bad(at, "", "%s", err)
	}
}
