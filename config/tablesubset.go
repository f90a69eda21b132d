package config

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/table"
)

// TableSubset is the set of configured tools that a table names. Unlike [Config.OnlyTable] it adds no server and no
// tool, so a caller of another process cannot make this one start or contact anything new.
type TableSubset struct {
	remotes map[[2]string]bool // server and remote name
	named   map[[2]string]bool // kind and name of tools that no server provides
	Rows    int                // rows that name a tool of a configured server, or a tool of another kind
	// Left are the reasons why rows are left out, at most 20. More is the number of further ones.
	Left []string
	More int
}

// Subset reads which of the configured tools a table names. A row belongs to a configured server if it names the
// server, or if it has the server's address or command. Errors: the errors of [table.Open]; the error of a table that
// cannot be read to its end; and if no row can be used, the error of the first row.
func (c *Config) Subset(ctx context.Context, path, column string, o table.Options) (s *TableSubset, err error) {
	r, err := table.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		closed := r.Close()
		if err == nil {
			err = closed
		}
	}()
	col, err := r.Column(column)
	if err != nil {
		return nil, err
	}
	s = &TableSubset{remotes: map[[2]string]bool{}, named: map[[2]string]bool{}}
	var first error
	for row, err := range r.Tools(ctx, col) {
		if err != nil {
			return nil, err
		}
		if row.Tool == nil && row.Err == nil {
			continue
		}
		err := row.Flaw()
		if err == nil {
			err = c.addRow(s, row.Tool)
		}
		if err == nil {
			if s.Rows++; s.Rows > maxTableTools {
				return nil, tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d tools", r.Name(), maxTableTools)
			}
			continue
		}
		if first == nil {
			first = tenon.Errorf(tenon.ErrorCode(err), "%s: %w", row.Place(), err)
		}
		if len(s.Left) < maxRowNotes {
			s.Left = append(s.Left, row.Place()+": "+err.Error())
		} else {
			s.More++
		}
	}
	switch {
	case s.Rows == 0 && first != nil:
		return nil, first
	case s.Rows == 0:
		return nil, tenon.Errorf(tenon.CodeInvalid, "%s has no row with a tool", r.Name())
	}
	return s, nil
}

// addRow adds the tool of a row.
func (c *Config) addRow(s *TableSubset, t *table.Tool) error {
	kinds := map[table.Kind]string{table.Workflow: tenon.KindWorkflow, table.HTTP: tenon.KindHTTP,
		table.Prompt: tenon.KindPrompt, table.Agent: tenon.KindAgent}
	if kind, ok := kinds[t.Kind]; ok {
		s.named[[2]string{kind, t.Name}] = true
		return nil
	}
	address, err := t.Address()
	if err != nil {
		return err
	}
	name := address.Server
	if name == "" {
		name = c.serverWith(address, t.Credential, t.Remote)
	}
	if _, ok := c.Servers[name]; !ok {
		return tenon.Errorf(tenon.CodeNotFound, "tool '%s': no server of this configuration has its address",
			tenon.Visible(t.Name))
	}
	if err := c.usable(t, name); err != nil {
		return tenon.Errorf(tenon.CodeConfig, "%w", err)
	}
	if why := c.hides(name, t.Remote); why != "" {
		return tenon.Errorf(tenon.CodeNotFound, "%s", hiddenTool(name, t.Remote, why))
	}
	s.remotes[[2]string{name, t.Remote}] = true
	return nil
}

// serverWith returns the server with an address; it may come from a table of tool_tables. If there are several, it
// returns the one with the same credential or the tool, or else the first by name.
func (c *Config) serverWith(address table.Address, credential, remote string) string {
	if name := c.withTarget(rowServer("", address), credential, remote); name != "" {
		return name
	}
	entry, first := rowServer("", address), ""
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		if !SameTarget(c.resolved(name), entry) {
			continue
		}
		if c.SecretName("servers."+name+".auth.secret") == credential {
			return name
		}
		first = cmp.Or(first, name)
	}
	return first
}

// Has reports whether the table names a tool.
func (s *TableSubset) Has(t *tenon.Tool) bool {
	if t.KindName() == tenon.KindMCP {
		return s.remotes[[2]string{t.Server, t.Remote}]
	}
	return s.named[[2]string{t.KindName(), t.Name}]
}
