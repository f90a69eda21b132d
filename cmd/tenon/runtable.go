package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/config"
)

// toolTable is a table whose tools an agent gets in place of those that are
// configured.
type toolTable struct{ path, column string }

func (t *toolTable) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.path, "table", "", "offer the tools of this `TABLE`, and no others")
	cmd.Flags().StringVar(&t.column, "tool-column", "", "`COLUMN` of the table that holds the tools (default: the last one that does)")
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

// apply puts the tools of the table into a configuration. Nothing is contacted: a
// server is opened when one of its tools is called. Hidden are servers that its workflows
// and agents alone may use.
func (t *toolTable) apply(ctx context.Context, a *app, cfg *config.Config) (hidden []string, err error) {
	hidden, err = cfg.OnlyTable(ctx, t.path, t.column, a.tableOptions(cfg), a.note)
	if err == nil && t.path != "-" && cfg.Path != "" && (a.config != "" || filepath.Dir(cfg.File) == ".") && isLent(cfg) {
		a.lent = t.path
	}
	return hidden, err
}

// isLent reports whether there are tools of the table that tenon.yaml does not have and
// config import gives it under the same names, as those have who decide about a call.
func isLent(cfg *config.Config) bool {
	lent := len(cfg.TableWorkflows()) > 0
	for _, e := range cfg.Tools {
		if !e.Loose { // the file's
			continue
		}
		if e.Server != config.EntryName(e.Server) {
			return false
		}
		lent = true
	}
	return lent
}
