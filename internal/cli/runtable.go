package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/table"
)

// toolTable is a table whose tools replace the configured tools of an agent.
type toolTable struct{ path, column string }

func (t *toolTable) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.path, "table", "", "offer only the tools of this `TABLE`")
	cmd.Flags().StringVar(&t.column, "tool-column", "", "`COLUMN` of the table that contains the tools (default: the "+
		"last such column)")
}

func (t *toolTable) check(cmd *cobra.Command, q *asking, d *detachFlags) error {
	switch {
	case t.path == "" && t.column != "":
		return usage(cmd, "--tool-column needs --table")
	case t.path != "" && q.noTools:
		return usage(cmd, "--table and --no-tools exclude each other")
	case t.path != "" && d.detach:
		return usage(cmd, "--table does not go with --detach: another process opens the servers")
	}
	return nil
}

// apply replaces the tools of a configuration by the tools of the table. It contacts no server: a server is opened when
// one of its tools is called. hidden are the servers that only the table's workflows and agents may use.
func (t *toolTable) apply(ctx context.Context, a *app, cfg *config.Config) (hidden []string, err error) {
	a.from = t
	return cfg.OnlyTable(ctx, t.path, t.column, a.tableOptions(cfg), a.note)
}

// send returns the table in the form in which it is sent to another process: the tools without their files. The other
// process uses only configured tools.
func (t *toolTable) send(ctx context.Context, a *app) (only *host.OnlyTable, err error) {
	r, err := table.Open(ctx, t.path, a.tableOptions(&config.Config{}))
	if err != nil {
		return nil, err
	}
	defer closing(r, &err)
	if _, err := r.Column(t.column); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	all := table.Selection{Keep: func(table.Cells) (bool, error) { return true, nil }, Most: maxSentTools}
	if _, err := table.Pick(ctx, "-", r, all, table.WriteOptions{Stdout: &out}); err != nil {
		return nil, err
	}
	if out.Len() > maxSent {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "table %s has more than %d MiB; tenon tables pick selects rows",
			tenon.Visible(t.path), maxSent>>20)
	}
	return &host.OnlyTable{Data: out.Bytes(), Column: t.column}, nil
}

// maxSentTools bounds the rows of a table that is sent to another process.
const maxSentTools = 10_000

// open adds the tools of the table to the opening of a verb that resumes a run.
func (t *toolTable) open(cmd *cobra.Command, a *app, o *opening) (err error) {
	switch {
	case t.path == "" && t.column != "":
		return usage(cmd, "--tool-column needs --table")
	case t.path == "":
		return nil
	case a.remote != "":
		return usage(cmd, "--table does not go with --remote")
	}
	if o.loaded, err = a.load(cmd.Context(), nil); err != nil {
		return err
	}
	if err := a.requireTrust(cmd.Context(), o.loaded); err != nil {
		return err // checked before the table's servers are part of the configuration
	}
	o.hidden, err = t.apply(cmd.Context(), a, o.loaded)
	return err
}

// kept returns the table in the form that a run stores, or nil if there is none.
func (t *toolTable) kept() *agent.ToolTable {
	if t == nil || t.path == "" {
		return nil
	}
	kept := &agent.ToolTable{Path: t.path, Column: t.column}
	kept.Dir, _ = os.Getwd() // used only in messages
	if abs, err := filepath.Abs(t.path); err == nil && t.path != "-" {
		kept.Path = abs
	}
	return kept
}

// words returns the flags that name the table in a command. A table from stdin becomes FILE, because stdin cannot be
// read again.
func (t *toolTable) words() []string {
	switch {
	case t == nil || t.path == "":
		return nil
	case t.path == "-":
		return []string{"--table", "FILE"}
	case t.column != "":
		return []string{"--table", shellWord(t.path), "--tool-column", shellWord(t.column)}
	}
	return []string{"--table", shellWord(t.path)}
}

// resumingRun returns the command that resumes a run of another process. It names the run's table if the table's
// servers are not configured here.
func (a *app) resumingRun(ctx context.Context, h desk, run string) string {
	words := []string{"runs resume", run}
	if local, ok := h.(*host.Host); ok {
		if t, missing, err := local.Runs().Open(run).Data().ToolTable(ctx); err == nil && t != nil && len(missing) > 0 {
			words = append(words, (&toolTable{path: t.Path, column: t.Column}).words()...)
		}
	}
	return a.again(words...)
}

// needTable refuses to resume a run without the table of its servers, because its calls would fail.
func (a *app) needTable(ctx context.Context, h desk, run string) error {
	local, ok := h.(*host.Host)
	if !ok {
		return nil
	}
	t, missing, err := local.Runs().Open(run).Data().ToolTable(ctx)
	switch {
	case err != nil || t == nil || len(missing) == 0:
		return err
	case a.from != nil:
		return tenon.Errorf(tenon.CodeConfig, "run %s began in %s, and the table %[4]s now names another target for "+
			"server %[3]s: resume it there, with the original table", run,
			tenon.Visible(t.Dir), tenon.Visible(strings.Join(missing, ", ")), tenon.Visible(a.from.path))
	}
	return tenon.Errorf(tenon.CodeConfig, "run %s has its tools from the table %s, and the configuration has no "+
		"server %s: resume it with %s", run, tenon.Visible(t.Path),
		tenon.Visible(strings.Join(missing, ", ")), a.resumingRun(ctx, h, run))
}
