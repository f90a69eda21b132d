package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

// Tools of kinds that KNIME does not have, as rows: requests, prompts and agents. What
// becomes of such rows is config's matter.

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
	entry, err := cfg.RowTool(t)
	if err != nil {
		return err
	}
	var names config.ToolNames
	if t.Kind == table.Agent {
		for name := range cfg.Tools {
			names.Take(name)
		}
	} else {
		cfg.Tools, cfg.Servers = nil, nil
		cfg.DropTables()
	}
	name := names.Make(t.Name)
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
