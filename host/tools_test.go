package host_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestToolsAreShapedOnce checks that starting a run does not depend on the number of tools while no server's list
// changes. All runs use the same snapshot, which includes tenon's own toolsets.
func TestToolsAreShapedOnce(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"fixed": fixed{{Remote: "a", Input: json.RawMessage(`{"type":"object"}`)}}},
		Config: &config.Config{Agents: map[string]agent.Config{
			"one": {Handoffs: []string{"two"}}, "two": {}}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	all := []string{"artifacts", "fixed", "handoffs"}
	first, problems, err := h.Tools().Snapshot(t.Context(), all...)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	second, _, err := h.Tools().Snapshot(t.Context(), all...)
	if err != nil || first != second {
		t.Errorf("the tools are merged again: %v %v", second.Names(), err)
	}
}

// fixed is a toolset whose list never changes.
type fixed []tenon.Tool

func (f fixed) Tools(context.Context) ([]tenon.Tool, error) { return f, nil }

func (f fixed) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("ok")}}, nil
}
