package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/table"
)

// Tools of kinds that KNIME does not have, as rows: requests, prompts and agents. What
// a table says of such a tool is held to the rules of the configuration, and, as a table
// is data, to more: it gets no secret and no variable of the environment, and nothing
// that it does goes without being asked about.

// rowEntry makes an entry of the configuration's tools out of a row of a kind of tenon's
// own. Errors: invalid, what is wrong with the row; denied, for a secret; not_found, for an
// agent or a model that is not there.
func rowEntry(cfg *config.Config, t *table.Tool) (catalog.Tool, error) {
	schema, err := t.Schema()
	if err != nil {
		return catalog.Tool{}, err
	}
	address, err := t.Address()
	if err != nil {
		return catalog.Tool{}, err
	}
	if address.Agent != "" {
		if _, ok := cfg.Agents[address.Agent]; !ok {
			return catalog.Tool{}, tenon.Errorf(tenon.CodeNotFound, "tool '%s' calls agent '%s', which the configuration does not have; agents: %s",
				tenon.Visible(t.Name), tenon.Visible(address.Agent), cmp.Or(strings.Join(slices.Sorted(maps.Keys(cfg.Agents)), ", "), "none"))
		}
		return catalog.Tool{Kind: tenon.KindAgent, Agent: address.Agent, Description: t.Description}, nil
	}
	if p := address.Prompt; p != nil {
		if _, ok := cfg.Models[p.Model]; p.Model != "" && !ok {
			return catalog.Tool{}, tenon.Errorf(tenon.CodeNotFound, "tool '%s' asks model '%s', which the configuration does not have under models", tenon.Visible(t.Name), tenon.Visible(p.Model))
		}
	} else if err := noRowSecrets(t, address.Request); err != nil {
		return catalog.Tool{}, err
	}
	entry := writtenEntry(t, address, schema)
	delete(entry, "model") // it is one, of this configuration
	const key = "tool"     // the row's name is made to fit later
	doc, err := encodeJSON(map[string]any{"version": 1, "tools": map[string]any{key: entry}})
	if err != nil {
		return catalog.Tool{}, tenon.Errorf(tenon.CodeInvalid, "tool '%s': %w", tenon.Visible(t.Name), err)
	}
	checked, err := config.Parse("server_uri", doc, config.Options{LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		return catalog.Tool{}, tenon.Errorf(tenon.CodeInvalid, "tool '%s' of kind %s: %s", tenon.Visible(t.Name), t.Kind, rowMistake(err))
	}
	out := checked.Tools[key]
	if address.Prompt != nil {
		out.Model = address.Prompt.Model
	}
	sum := sha256.Sum256([]byte(t.Server + "\x00" + string(schema)))
	// What was allowed for good of another tool of this name says nothing of this one.
	out.RemoteName = t.Name + "@" + hex.EncodeToString(sum[:6])
	out.Annotations = unknownEffects()
	return out, nil
}

// writtenEntry is the entry of a tool of a kind of tenon's own, by the keys of the
// configuration. A dollar sign is one: a table takes nothing from the environment.
func writtenEntry(t *table.Tool, address table.Address, schema json.RawMessage) map[string]any {
	entry := map[string]any{"description": t.Description}
	switch r := address.Request; {
	case address.Agent != "":
		entry["kind"], entry["agent"] = tenon.KindAgent, address.Agent
		return entry
	case r != nil:
		literal := func(s string) string { return strings.ReplaceAll(s, "$", "$$") }
		request := map[string]any{"method": cmp.Or(r.Method, http.MethodGet), "url": literal(r.URL)}
		if len(r.Headers) > 0 {
			headers := map[string]string{}
			for name, value := range r.Headers {
				headers[name] = literal(value)
			}
			request["headers"] = headers
		}
		if r.Body != "" {
			request["body"] = r.Body
		}
		entry["kind"], entry["request"] = tenon.KindHTTP, request
	default:
		entry["kind"], entry["template"] = tenon.KindPrompt, address.Prompt.Template
		if address.Prompt.Model != "" {
			entry["model"] = address.Prompt.Model
		}
	}
	entry["schema"] = schema
	return entry
}

// unknownEffects are the annotations of what may do anything.
func unknownEffects() catalog.Annotations {
	yes, no := true, false
	return catalog.Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &no, OpenWorld: &yes}
}

// rowMistake is the first mistake of a row, without the place in a file that nobody has.
func rowMistake(err error) string {
	var list config.Errors
	if !errors.As(err, &list) || len(list) == 0 {
		return err.Error()
	}
	if at := strings.TrimPrefix(strings.TrimPrefix(list[0].Path, "tools.tool"), "."); at != "" {
		return at + ": " + list[0].Message
	}
	return list[0].Message
}

// noRowSecrets refuses a request that would take a secret along: nobody knows where to.
func noRowSecrets(t *table.Tool, r *table.Request) error {
	templates, err := policy.NewTemplates()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		text, err := templates.Compile(r.Headers[name], true)
		if err != nil {
			continue // the configuration's rules say what is wrong
		}
		if secrets := text.Secrets(); len(secrets) > 0 {
			return tenon.Errorf(tenon.CodeDenied, "tool '%s' came with a table, and its header %s wants the secret '%s'; look at it, and make it a tool of the configuration",
				tenon.Visible(t.Name), tenon.Visible(name), tenon.Visible(secrets[0]))
		}
	}
	return nil
}

// rowMakers make rows of tools that are none of a server's: a row, or the reason why it
// cannot be one. The entry is the tool's in the configuration.
var rowMakers = map[string]func(h *host.Host, t *tenon.Tool, entry catalog.Tool) (row table.Row, why string, err error){
	tenon.KindWorkflow: func(h *host.Host, t *tenon.Tool, entry catalog.Tool) (row table.Row, why string, err error) {
		w, ok := h.Workflow(t.Remote)
		if !ok {
			return row, "its workflow is not there", nil
		}
		if row.Tool, err = workflowRow(w); err != nil {
			return row, "", err
		}
		row.Tool.Name, row.Tool.Description = t.Name, cmp.Or(entry.Description, w.File.Description)
		row.Pack, err = w.Pack.Zip()
		return row, "", err
	},
	tenon.KindAgent: func(_ *host.Host, t *tenon.Tool, _ catalog.Tool) (table.Row, string, error) {
		return ownRow(t, table.Agent, table.AgentURI(t.Remote)), "", nil
	},
	tenon.KindPrompt: func(_ *host.Host, t *tenon.Tool, e catalog.Tool) (table.Row, string, error) {
		return ownRow(t, table.Prompt, table.PromptText{Template: e.Template, Model: e.Model}.URI()), "", nil
	},
	tenon.KindHTTP: func(_ *host.Host, t *tenon.Tool, e catalog.Tool) (table.Row, string, error) {
		r := e.Request
		return ownRow(t, table.HTTP, table.Request{Method: r.Method, URL: r.URL, Headers: r.Headers, Body: r.Body}.URI()), private(r), nil
	},
}

func ownRow(t *tenon.Tool, kind table.Kind, uri string) table.Row {
	return table.Row{Tool: &table.Tool{Kind: kind, Name: t.Name, Description: t.Description, Parameters: string(t.Input), Message: -1, Server: uri}}
}

// kindRow makes a row of a tool that is none of a server's; why says why it cannot be
// one, "" where it can.
func kindRow(h *host.Host, t *tenon.Tool) (row table.Row, why string, err error) {
	maker, ok := rowMakers[t.Kind]
	if !ok {
		return row, "it is not of an MCP server but of " + t.Server, nil
	}
	cfg, entry := h.Config(), catalog.Tool{}
	for name, e := range cfg.Tools {
		if e = e.WithDefaults(name); e.Server == t.Server && e.RemoteName == t.Remote {
			entry = e
			if vars := cfg.Variables("tools." + name + ".request"); len(vars) > 0 {
				return row, "it takes values from the environment (" + vars[0] + "), which a table must not hold: use an entry of secrets", nil
			}
		}
	}
	return maker(h, t, entry)
}

// private says what of a request must not be passed on, "" for nothing.
func private(r catalog.Request) string {
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		switch strings.ToLower(name) {
		case "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key":
			if !strings.Contains(r.Headers[name], "secrets.") {
				return "its header " + name + " may hold a password, which a table must not: use an entry of secrets"
			}
		}
	}
	return ""
}

// callKind calls a tool of a row that is a request, a prompt or an agent. A request and
// a prompt need no server; an agent has the tools of the configuration.
func (c *callTable) callKind(ctx context.Context, a *app, o opening, cfg *config.Config, t *table.Tool, params json.RawMessage) (err error) {
	entry, err := rowEntry(cfg, t)
	if err != nil {
		return err
	}
	tools := &tableTools{names: map[string]bool{}}
	if t.Kind == table.Agent {
		for name := range cfg.Tools {
			tools.names[name] = true
		}
	} else {
		cfg.Tools, cfg.Servers = nil, nil
	}
	name := tools.name(t.Name)
	if t.Kind == table.Agent {
		cfg.Tools = maps.Clone(cfg.Tools)
		maps.DeleteFunc(cfg.Tools, func(_ string, e catalog.Tool) bool { return e.Kind == tenon.KindAgent && e.Agent == entry.Agent })
	}
	cfg.SetTools(map[string]catalog.Tool{name: entry})
	o.loaded = cfg
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	entry = entry.WithDefaults(name)
	snapshot, problems, err := h.Tools(ctx, entry.Server)
	if err != nil {
		return err
	}
	for _, s := range snapshot.Tools() {
		if s.Remote != entry.RemoteName {
			continue
		}
		run, err := h.StartToolCall(ctx, host.ToolCall{Name: s.Name, Arguments: params, Principal: tenon.PrincipalLocal, Server: entry.Server})
		if err != nil {
			return plain{err}
		}
		return c.follow(ctx, a, h, cfg, t.Name, run.ID)
	}
	for _, p := range problems {
		return plain{p.Err}
	}
	for _, w := range snapshot.Withheld() {
		return tenon.Errorf(tenon.CodeInvalid, "tool '%s' cannot be used: %s", tenon.Visible(t.Name), w.Reason)
	}
	return tenon.Errorf(tenon.CodeInternal, "tool '%s' is not among the tools", tenon.Visible(t.Name))
}
