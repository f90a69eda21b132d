package host_test

import (
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// TestToolTablesOfAProgram offers the rows of a table that a Go program names in its configuration. No server is
// contacted, because the names come from the table.
func TestToolTablesOfAProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.arrow")
	rows := []table.Row{{Tool: &table.Tool{Kind: table.MCP, Name: "add", Remote: "sum", Server: "http://127.0.0.1:1/", Message: -1}}}
	if err := table.WriteTools(t.Context(), path, rows, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{ToolTables: []config.ToolTable{{Path: path}}}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s, problems, err := h.Tools().Snapshot(t.Context())
	if err != nil || len(problems) > 0 || len(s.Tools()) != 1 {
		t.Fatalf("%v, %v, %v", s, problems, err)
	}
	if got := s.Tools()[0]; got.Name != "add" || got.Remote != "sum" || got.Server != "127.0.0.1" {
		t.Errorf("the tool is %s, %s of %s", got.Name, got.Remote, got.Server)
	}
	if got := h.Service().Connections()["127.0.0.1"].Status().State; got != servers.StateCold {
		t.Errorf("its server is %s", got)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.ToolTables[0].Path += "x"
	if _, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir()}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a table that is not there: %v", err)
	}
}
