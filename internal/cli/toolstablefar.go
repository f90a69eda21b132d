package cli

import (
	"bytes"
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/table"
)

// callFar calls a tool of another tenon that a row of the table selects. The row is sent, and the other tenon finds its
// own tool with it: it opens no server that only the table names.
func (c *callTable) callFar(ctx context.Context, a *app, o opening, name string,
	params callArguments) (err error) {
	switch {
	case c.given():
		return tenon.Errorf(tenon.CodeInvalid, "--in and --debug cannot be combined with --table and --remote: the "+
			"other tenon takes tables only for its own workflows; call one by its name, without --table")
	case c.yes:
		return tenon.Errorf(tenon.CodeInvalid, "--yes cannot be combined with --remote: the other tenon opens no "+
			"server that only a table names; decide the questions of workflow steps with tenon approvals")
	}
	t, only, err := c.sendRow(ctx, a, name)
	if err != nil {
		return err
	}
	flow := t.Kind == table.Workflow
	if flow {
		err = c.checkUnknown(a)
	} else {
		_, err = c.resultFile()
	}
	if err != nil {
		return err
	}
	if len(params.words) > 0 {
		if params.raw, err = rowArguments(t, params.words); err != nil {
			return err
		}
	}
	h, err := a.desk(ctx, o)
	if err != nil {
		return err
	}
	defer closing(h, &err)
	run, err := h.Tools().Start(ctx, host.ToolCall{Name: t.Name, Arguments: params.raw, Only: only})
	if err != nil {
		return err
	}
	result, err := a.followCall(ctx, h, t.Name, run.ID)
	if err != nil {
		return direct{err}
	}
	if !flow {
		return a.showResult(ctx, &config.Config{}, t.Name, result, &c.ports)
	}
	if err := a.printResult(t.Name, result); err != nil || len(c.out) == 0 {
		return err
	}
	return c.writeResult(ctx, a, h, run.ID)
}

// rowArguments makes the arguments of a row's tool from words.
func rowArguments(t *table.Tool, words []catalog.Word) ([]byte, error) {
	schema, err := t.Schema()
	if err != nil {
		return nil, err
	}
	if t.Kind == table.Workflow {
		return catalog.TypedWords(schema, words), nil
	}
	return catalog.ReadWords(schema, words)
}

// hasEntry reports whether the configuration has an entry for a tool, which then describes its arguments.
func hasEntry(cfg *config.Config, server, remote string) bool {
	for _, e := range cfg.Tools {
		if e.Server == server && e.RemoteName == remote {
			return true
		}
	}
	return false
}

// fitsRow checks arguments against the schema of the row, as a run with the table does. The schema of the server is
// checked when the call is made. Errors: invalid.
func fitsRow(t *table.Tool, params callArguments) error {
	schema, err := t.Schema()
	if err != nil {
		return err
	}
	raw := params.raw
	if len(params.words) > 0 {
		if raw, err = rowArguments(t, params.words); err != nil {
			return err
		}
	}
	row, _ := catalog.Build([]catalog.Source{{Server: "table",
		Tools: []tenon.Tool{{Name: t.Name, Remote: t.Name, Input: schema}}}})
	if len(row.Tools()) != 1 { // a run leaves out the row, and says why
		return nil
	}
	_, err = row.Prepare(&tenon.ToolCall{Name: row.Tools()[0].Name, Arguments: raw}, policy.Keys{})
	return err
}

// sendRow returns the selected tool, and a table that has only its row, without files.
func (c *callTable) sendRow(ctx context.Context, a *app, name string) (t *table.Tool, only *host.OnlyTable, err error) {
	r, err := table.Open(ctx, c.path, a.tableOptions(&config.Config{}))
	if err != nil {
		return nil, nil, err
	}
	defer closing(r, &err)
	col, err := r.Column(c.column)
	if err != nil {
		return nil, nil, err
	}
	index := int64(-1)
	if c.row != "" {
		if index, err = rowIndex(c.row); err != nil {
			return nil, nil, err
		}
	}
	var out bytes.Buffer
	var names, unread []string
	row, found := int64(-1), 0
	keep := func(cells table.Cells) (bool, error) {
		row++
		if index >= 0 && row != index {
			return false, nil
		}
		at, err := cells.Tool(col)
		switch {
		case err != nil && index < 0:
			unread = append(unread, err.Error())
			return false, nil
		case err != nil || at == nil:
			return false, err
		}
		names = append(names, at.Name)
		if index < 0 && at.Name != name {
			return false, nil
		}
		t, found = at, found+1
		return found == 1, nil
	}
	_, err = table.Pick(ctx, "-", r, table.Selection{Keep: keep}, table.WriteOptions{Stdout: &out})
	switch {
	case err != nil:
		return nil, nil, err
	case found > 1:
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "%s has more than one tool '%s'; give the row: "+
			"tenon tools list --table %s shows it", c.path, tenon.Visible(name), c.path)
	case found == 0 && index >= 0:
		return nil, nil, tenon.Errorf(tenon.CodeNotFound, "%s has no tool in row %s", c.path, c.row)
	case found == 0:
		return nil, nil, tenon.Errorf(tenon.CodeNotFound, "there is no tool '%s' in %s%s", tenon.Visible(name), c.path,
			didYouMean(name, names)+rowsUnread(unread))
	case out.Len() > maxSent:
		return nil, nil, tenon.Errorf(tenon.CodeTooLarge, "the row has more than %d MiB", maxSent>>20)
	}
	return t, &host.OnlyTable{Data: out.Bytes(), Column: c.column}, nil
}
