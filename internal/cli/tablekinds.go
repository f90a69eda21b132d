package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// This file writes tools of kinds that KNIME does not have (requests, prompts and agents) as rows of a table, and calls
// them. Package config decides how to read such rows.

// rowMakers contains, for each kind of tool that no server provides, a function that returns its row, or the reason why
// it has none. The entry is the tool in the configuration.
var rowMakers = map[string]func(ctx context.Context, h *host.Host, t *tenon.Tool, entry catalog.Tool) (row table.Row,
	why string, err error){
	tenon.KindWorkflow: func(ctx context.Context, h *host.Host, t *tenon.Tool, entry catalog.Tool) (row table.Row,
		why string, err error) {
		w, err := h.Workflows().Get(ctx, t.Remote)
		if err != nil {
			return row, "its workflow does not exist", nil
		}
		if row.Tool, err = workflowRow(w); err != nil {
			return row, "", err
		}
		row.Tool.Name, row.Tool.Description = t.Name, cmp.Or(entry.Description, w.File.Description)
		row.Pack, err = zipPack(w.Name, w.Pack)
		return row, "", err
	},
	tenon.KindAgent: func(_ context.Context, _ *host.Host, t *tenon.Tool, _ catalog.Tool) (table.Row, string, error) {
		return ownRow(t, table.Agent, table.AgentURI(t.Remote)), "", nil
	},
	tenon.KindPrompt: func(_ context.Context, _ *host.Host, t *tenon.Tool, e catalog.Tool) (table.Row, string, error) {
		why := ""
		if len(servers.SecretPlaces(e.Template)) > 0 {
			why = "its template contains a credential, which a table must not"
		}
		return ownRow(t, table.Prompt, table.PromptText{Template: e.Template, Model: e.Model}.URI()), why, nil
	},
	tenon.KindHTTP: func(_ context.Context, _ *host.Host, t *tenon.Tool, e catalog.Tool) (table.Row, string, error) {
		r := e.Request
		return ownRow(t, table.HTTP, table.Request{Method: r.Method, URL: r.URL, Headers: r.Headers,
			Body: r.Body}.URI()), private(r), nil
	},
}

func ownRow(t *tenon.Tool, kind table.Kind, uri string) table.Row {
	return table.Row{Tool: &table.Tool{Kind: kind, Name: t.Name, Description: t.Description,
		Parameters: string(t.Input), Message: -1, Server: uri}}
}

// kindRow returns the row of a tool that no server provides, or the reason why it has none.
func kindRow(ctx context.Context, h *host.Host, t *tenon.Tool) (row table.Row, why string, err error) {
	maker, ok := rowMakers[t.Kind]
	if !ok {
		return row, "it is not a tool of an MCP server but of " + t.Server, nil
	}
	cfg, entry := h.Service().Info().Config, catalog.Tool{}
	for name, e := range cfg.Tools {
		if e = e.WithDefaults(name); e.Server == t.Server && e.RemoteName == t.Remote {
			entry = e
			if vars := cfg.Variables("tools." + name + ".request"); len(vars) > 0 {
				return row, "it takes values from the environment (" + vars[0] +
					"), which a table must not hold: use an entry of secrets", nil
			}
		}
	}
	return maker(ctx, h, t, entry)
}

// noteUncallable warns of a row that no program can call, such as a request with a secret. Its owner can still read it
// in the table.
func (a *app) noteUncallable(t *table.Tool) {
	if flaw := config.RowFlaw(t); flaw != "" {
		a.note("tool '%s' is in the table, but no tenon calls its row, and tenon tables check reports it: %s", t.Name,
			flaw)
	}
}

// private returns why a request must not be written to a table, or "" if it may. Literals are judged as in the
// configuration.
func private(r catalog.Request) string {
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		switch strings.ToLower(name) {
		case "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key":
			if !strings.Contains(r.Headers[name], "secrets.") {
				return "its header " + name + " may hold a password, which a table must not: use an entry of secrets"
			}
		}
		if len(servers.SecretPlaces(r.Headers[name], name)) > 0 {
			return "its header " + name + " contains a credential, which a table must not: use an entry of secrets"
		}
	}
	if len(servers.SecretPlaces(r.URL)) > 0 {
		return "its URL contains a credential, which a table must not: use a header with an entry of secrets"
	}
	if len(servers.SecretPlaces(r.Body)) > 0 {
		return "its body contains a credential, which a table must not: use a header with an entry of secrets"
	}
	return ""
}

// callKind calls a tool of a table that is a request, a prompt or an agent. A request and a prompt need no server. An
// agent uses the tools of the configuration.
func (c *callTable) callKind(ctx context.Context, a *app, o opening, cfg *config.Config, t *table.Tool,
	params callArguments) (err error) {
	entry, err := cfg.RowTool(t)
	if err != nil {
		return err
	}
	var names catalog.ToolNames
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
		maps.DeleteFunc(cfg.Tools, func(_ string, e catalog.Tool) bool {
			return e.Kind == tenon.KindAgent &&
				e.Agent == entry.Agent
		})
	}
	cfg.SetTools(map[string]catalog.Tool{name: entry})
	o.loaded = cfg
	h, err := a.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	entry = entry.WithDefaults(name)
	snapshot, problems, err := h.Tools().Snapshot(ctx, entry.Server)
	if err != nil {
		return err
	}
	for _, s := range snapshot.Tools() {
		if s.Remote != entry.RemoteName {
			continue
		}
		run, err := h.Tools().Start(ctx, host.ToolCall{Name: s.Name, Arguments: params.raw,
			Words: params.words, Server: entry.Server})
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
