package host_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// recorded is a model that records the names of the tools in its requests.
type recorded struct {
	watchful

	names []string
}

func (m *recorded) Generate(ctx context.Context, r *tenon.Request) iter.Seq2[tenon.Delta, error] {
	for _, t := range r.Tools {
		if !slices.Contains(m.names, t.Name) {
			m.names = append(m.names, t.Name)
		}
	}
	return m.watchful.Generate(ctx, r)
}

// TestSelectedToolsOfARun checks a run whose question selects its tools with a table. When the server reports a change,
// no other tool is offered.
func TestSelectedToolsOfARun(t *testing.T) {
	t.Run("RP-22_selected", func(t *testing.T) {
		url := overHTTP(t)
		path := filepath.Join(t.TempDir(), "some.arrow")
		var rows []table.Row
		for _, name := range []string{"mutate", "counter"} {
			rows = append(rows, table.Row{ID: name, Tool: &table.Tool{Kind: table.MCP, Name: name, Remote: name,
				Server: url, Message: -1}})
		}
		if err := table.WriteTools(t.Context(), path, rows, table.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := &recorded{}
		h := openModel(t, t.TempDir(), m, &config.Config{Servers: map[string]servers.Config{"t": {URL: url}}})
		_, err = host.Ask(t.Context(), h, host.Question{Text: "go", Grant: "test", MaxTurns: 40,
			OnlyTable: &host.OnlyTable{Data: data}})
		if err != nil && tenon.ErrorCode(err) != tenon.CodeLimit {
			t.Fatal(err)
		}
		slices.Sort(m.names)
		if diff := cmp.Diff([]string{"counter", "mutate"}, m.names); diff != "" {
			t.Error(diff)
		}
	})
}
