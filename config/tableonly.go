package config

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// OnlyTable replaces the configured tools by the tools of a table. hidden are the servers that only the steps of the
// table's workflows and its agents may use. note is called for each row that is left out. It returns the errors of
// [table.Open], and the error of a row with the row's place.
func (c *Config) OnlyTable(ctx context.Context, path, column string, o table.Options,
	note func(format string, args ...any)) (hidden []string, err error) {
	c.Tools = maps.Clone(c.Tools) // others may use the map
	t := newTableTools(c, note)
	for name, e := range c.Tools {
		if e = e.WithDefaults(name); e.Kind != tenon.KindWorkflow {
			t.said[[2]string{e.Server, e.RemoteName}] = name
		}
	}
	if err := t.take(ctx, path, column, o); err != nil {
		return nil, err
	}
	return t.finish(), nil
}

// finish keeps only the servers and tools that the table names. If the table has workflows or agents, their other
// servers are kept too and returned as hidden.
func (t *tableTools) finish() (hidden []string) {
	if t.missing > 0 {
		t.note("%s: %s (%d missing skipped)", t.path, counted(t.rows, "tool"), t.missing)
	}
	kept := map[string]servers.Config{}
	for server, remotes := range t.remotes {
		entry, ok := t.c.Servers[server]
		if !ok {
			continue // its kind has no server
		}
		if slices.Contains(t.own, server) {
			entry.Include = escaped(slices.Sorted(maps.Keys(remotes)))
		}
		kept[server] = entry
	}
	if len(t.flows) > 0 || t.agents {
		for server, entry := range t.c.Servers {
			if _, ok := kept[server]; !ok {
				kept[server] = entry
				hidden = append(hidden, server)
			}
		}
	}
	entries := maps.Clone(t.c.Tools)
	maps.DeleteFunc(entries, func(name string, e catalog.Tool) bool {
		e = e.WithDefaults(name)
		return !slices.Contains(hidden, e.Server) && (!slices.Contains(t.own, e.Server) ||
			!t.has(e.Server, e.RemoteName))
	})
	t.clear(entries)
	t.c.Servers, t.c.Tools, t.c.flows, t.c.ToolTables = kept, entries, t.flows, nil
	t.c.SetTools(t.entries)
	return hidden
}

// clear renames tools of the table that have the name of an entry of the file. The rules of such an entry are meant
// for another tool.
func (t *tableTools) clear(entries map[string]catalog.Tool) {
	for name := range entries {
		t.names.Take(name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		if _, there := entries[name]; there {
			t.entries[t.names.Make(name)] = t.entries[name]
			delete(t.entries, name)
		}
	}
}

// escaped returns globs that match exactly the names.
func escaped(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(n)
	}
	return out
}
