package cli

import (
	"cmp"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/trust"
	"github.com/tenonhq/tenon/workflow"
)

// secrets adds an item for each secret that the project uses, with the entries that use it.
func (b *itemBuilder) secrets() {
	type source struct {
		text string
		user bool
	}
	takers := map[source][]string{}
	add := func(use config.SecretUse) {
		key := source{sourceText(use.Source), use.User}
		if use.User {
			key.text = "your secret " + use.Name + " (" + key.text + ")"
		}
		if !slices.Contains(takers[key], use.Path) {
			takers[key] = append(takers[key], use.Path)
		}
	}
	for _, use := range b.cfg.SecretUses() {
		add(use)
	}
	b.eachRequest(func(path string, r catalog.Request) {
		for _, k := range slices.Sorted(maps.Keys(r.Headers)) {
			for _, m := range headerSecret().FindAllStringSubmatch(r.Headers[k], -1) {
				if s, ok := b.cfg.Secrets[m[1]]; ok {
					add(config.SecretUse{Path: path, Name: m[1], Source: s,
						User: b.cfg.Layer("secrets."+m[1]) == config.LayerUser})
				}
			}
		}
	})
	for key, paths := range takers {
		slices.Sort(paths)
		b.list = append(b.list, trustItem(itemSecret, "", key.text+" for "+strings.Join(paths, ", ")))
	}
}

// files adds the files outside of the project's folder that the project reads or names.
func (b *itemBuilder) files() {
	cfg := b.cfg
	outside := func(path string) bool {
		rel, err := filepath.Rel(cfg.Dir, path)
		return path != "" && (err != nil || !filepath.IsLocal(rel))
	}
	add := func(at, path, what string) {
		if outside(path) {
			b.add(itemFile, at, "read "+path+what)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		a, at := cfg.Agents[name], "agents."+name
		add(at, a.Instructions.File, " and send it to the model")
		add(at, a.ResponseFormat.File, " and send it to the model")
		if filepath.IsAbs(a.Prompt) {
			add(at, a.Prompt, " and send it to the model")
		}
		for _, f := range a.DataInputs {
			add(at, f, " and offer it to the model")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Servers)) {
		s, at := cfg.Servers[name], "servers."+name
		if !s.IsEnabled() {
			continue
		}
		add(at, s.EnvFile, " for its environment")
		for _, dir := range s.Roots {
			b.add(itemFile, at, "tell it to work in the folder "+b.place(dir))
		}
	}
	for i, t := range cfg.ToolTables {
		b.add(itemFile, "tool_tables["+strconv.Itoa(i)+"]",
			"offer the tools of the table "+b.place(t.Path)+": "+cfg.TableBrings(i))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools)) {
		add("tools."+name, cfg.Tools[name].Path, ", a workflow")
	}
	if cfg.Prices != "" {
		add("prices", cfg.Prices, " for the prices of models")
	}
}

// eachRequest calls visit for each request of a tool or a workflow step, with its path.
func (b *itemBuilder) eachRequest(visit func(path string, r catalog.Request)) {
	cfg := b.cfg
	for _, name := range slices.Sorted(maps.Keys(cfg.Tools)) {
		t, path := cfg.Tools[name], "tools."+name
		if !t.IsEnabled() || cfg.FromUser(path) {
			continue
		}
		if t.Request.URL != "" {
			visit(path, t.Request)
		}
		if t.Path == "" {
			continue
		}
		if w, _, err := cfg.ReadWorkflow(t.Path); err == nil {
			stepRequests(path, w, visit)
		}
	}
	flows := cfg.TableWorkflows()
	for _, name := range slices.Sorted(maps.Keys(flows)) {
		stepRequests("tools."+name, flows[name].Workflow, visit)
	}
}

func stepRequests(path string, w *workflow.Workflow, visit func(string, catalog.Request)) {
	for _, s := range w.File.Steps {
		if s.HTTP != nil {
			visit(path+" step "+s.ID, *s.HTTP)
		}
	}
}

// requests adds the HTTP requests of tools and of workflow steps.
func (b *itemBuilder) requests() {
	b.eachRequest(b.request)
}

// stepRequests adds the HTTP requests of a workflow.
func (b *itemBuilder) stepRequests(w host.Workflow) {
	stepRequests(w.Name, w.Workflow, b.request)
}

// request adds an HTTP request of a tool or a step.
func (b *itemBuilder) request(path string, r catalog.Request) {
	text := "send " + cmp.Or(r.Method, http.MethodGet) + " requests to " + b.address(path+".request.url", r.URL)
	if r.Annotations().IsReadOnly() {
		text = "without a question, " + text
	}
	var sent []string
	for _, k := range slices.Sorted(maps.Keys(r.Headers)) {
		var refs []string
		for _, m := range headerSecret().FindAllStringSubmatch(r.Headers[k], -1) {
			refs = append(refs, m[1])
		}
		header := "the header " + k
		if len(refs) > 0 {
			header += " (" + r.Headers[k] + ", with " + namedSecrets(b.cfg, refs) + ")"
		}
		sent = append(sent, header)
	}
	if r.Body != "" {
		sent = append(sent, "a body")
	}
	if len(sent) > 0 {
		text += ", with " + strings.Join(sent, ", ")
	}
	if r.AllowPrivate {
		text += ", also to private addresses and this machine"
	}
	b.list = append(b.list, trustItem(itemRequest, path, text))
}

// listen adds the addresses of tenon serve, if the project configures it.
func (b *itemBuilder) listen() {
	cfg := b.cfg
	values, err := cfg.Show("serve")
	if err != nil || !slices.ContainsFunc(values,
		func(v config.Value) bool { return cfg.Layer(v.Path) == config.LayerProject }) {
		return
	}
	s := cfg.Serve.WithDefaults()
	where := "with tenon serve listen on " + s.Listen
	if s.Listen == config.ListenOff {
		where = "with tenon serve listen on no address"
	} else if !config.IsLoopback(s.Listen) {
		where += ", which other machines reach"
	}
	who := ", for everybody who has your token"
	if s.Auth.Type == config.ServeOpen {
		who = ", without authentication: everybody who reaches the address is you"
	} else if source, ok := cfg.SecretAt("serve.auth.secret"); ok {
		who = ", for everybody who has the token " + sourceText(source)
	}
	if names := slices.Sorted(maps.Keys(s.Auth.Tokens)); len(names) > 0 {
		who += ", and for " + strings.Join(names, ", ")
	}
	if s.Auth.OAuth.IsOn() {
		var issuers []string
		for _, i := range s.Auth.OAuth.Issuers {
			issuers = append(issuers, i.URL)
		}
		who += ", and for MCP clients with access tokens of " + strings.Join(issuers, ", ")
	}
	if len(s.Origins) > 0 {
		who += ", and for pages of " + strings.Join(s.Origins, ", ")
	}
	b.list = append(b.list, trustItem(itemListen, "serve", where+who))
}

// yours adds the project's entries for tools of servers in the user's own file.
func (b *itemBuilder) yours() {
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Tools)) {
		t := b.cfg.Tools[name].WithDefaults(name)
		if t.IsEnabled() && t.Server != "" && b.cfg.FromUser("servers."+t.Server) {
			b.add(itemYours, "tools."+name,
				"change how the tool "+t.RemoteName+" of your server "+t.Server+" is offered")
		}
	}
}

// readOnly adds the tools that the project declares read-only. Their calls ask no question.
func (b *itemBuilder) readOnly() {
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Tools)) {
		t := b.cfg.Tools[name]
		if a := t.Annotations.ReadOnly; a == nil || !*a || !t.IsEnabled() {
			continue
		}
		b.add(itemReadOnly, "tools."+name, "treat "+name+" as read-only, because the project says so")
	}
}

func trustItem(kind, path, text string) trust.Item {
	return trust.Item{Kind: kind, Path: path, Text: text}
}

// hosted adds the tools that the providers of models run, and the MCP servers that they call.
func (b *itemBuilder) hosted() {
	add := func(path string, names []string) {
		if len(names) == 0 {
			return
		}
		text := "let the provider of the model run " + strings.Join(names, ", ")
		if vars := b.cfg.Variables(path); len(vars) > 0 {
			text += ", sending " + dollars(vars)
		}
		if refs := b.cfg.SecretRefsBelow(path); len(refs) > 0 {
			text += ", sending " + namedSecrets(b.cfg, refs)
		}
		b.add(itemURL, path, text)
	}
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Models)) {
		m := b.cfg.Models[name]
		add("models."+name+".tools", model.HostedNames(m.Tools))
		add("models."+name+".extra", m.SwitchedOn())
	}
	for _, name := range slices.Sorted(maps.Keys(b.cfg.Agents)) {
		add("agents."+name+".provider_tools", model.HostedNames(b.cfg.Agents[name].ProviderTools))
	}
}
