package host_test

import (
	"context"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// TestKnownToolsStartNothing checks that the list of known tools contains the tools that need no server, and leaves out
// the tools of a server that was never listed. It does not start this server.
func TestKnownToolsStartNothing(t *testing.T) {
	cfg := &config.Config{Servers: map[string]servers.Config{"never": {Command: "/nonexistent/server"}}}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Toolsets: map[string]tenon.Toolset{"own": knownTools{}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	known, err := h.Tools().Known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tools := known.Tools(); len(tools) != 1 || tools[0].Name != "here" {
		t.Errorf("%v", tools)
	}
	if s := h.Service().Connections()["never"].Status(); s.Error != nil || s.Starts != 0 {
		t.Errorf("the server was tried: %+v", s)
	}
}

type knownTools struct{}

func (knownTools) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Server: "own", Remote: "here"}}, nil
}

func (knownTools) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("x")}}, nil
}
