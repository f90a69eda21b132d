package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

// A host can be opened without a configuration file. Go functions become tools; their arguments are checked against the
// schema of the argument type.
func ExampleNewFunction() {
	ctx := context.Background()
	home, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(home)

	type place struct {
		City string `json:"city" jsonschema:"name of the city"`
		Unit string `json:"unit,omitempty"`
	}
	weather := host.NewFunction("get_weather", "The weather at a place", func(_ context.Context, p place) (string, error) {
		return "15 degrees in " + p.City, nil
	})
	h, err := host.Open(ctx, host.Config{Home: home, Functions: []host.Function{weather}})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	r, _, err := host.CallTool(ctx, h, "get_weather", json.RawMessage(`{"city":"London"}`), nil)
	fmt.Println(r.Text(), err)
	_, _, err = host.CallTool(ctx, h, "get_weather", json.RawMessage(`{"town":"London"}`), nil)
	fmt.Println(tenon.ErrorCode(err))
	// Output:
	// 15 degrees in London <nil>
	// invalid
}

// wallClock is a toolset written in Go.
type wallClock struct{}

func (wallClock) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "now", Description: "The time", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (wallClock) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("noon")}}, nil
}

// Toolsets can be added and removed while a host is open. Every tool names its server. Removing a server removes
// exactly its tools. AddServer does the same with an MCP server.
func ExampleTools() {
	ctx := context.Background()
	home, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(home)
	h, err := host.Open(ctx, host.Config{Home: home, Toolsets: map[string]tenon.Toolset{"wall": wallClock{}}})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	show := func() {
		snapshot, _, err := h.Tools().Snapshot(ctx)
		if err != nil {
			log.Fatal(err)
		}
		var list []string
		for _, t := range snapshot.Tools() {
			list = append(list, t.Name+" of "+t.Server)
		}
		fmt.Println(strings.Join(list, ", "))
	}
	show()
	if err := h.Tools().Add(ctx, "wrist", wallClock{}); err != nil {
		log.Fatal(err)
	}
	show()
	if err := h.Servers().Remove(ctx, "wall"); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// now of wall
	// now of wall, wrist_now of wrist
	// wrist_now of wrist
}

// An MCP server can be added while the host is open. Its entry filters and renames its tools. Then a Go function gets
// each tool, and returns it with changes, or nil to leave it out.
func ExampleServers() {
	ctx := context.Background()
	h, err := host.Open(ctx, host.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	err = h.Servers().Add(ctx, "files", servers.Config{
		Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "."},
		Exclude: []string{"*delete*", "*write*"},
		Transform: []catalog.Transform{{Prefix: "files_"}, {Func: func(t tenon.Tool) *tenon.Tool {
			if !t.Annotations.IsReadOnly() {
				return nil
			}
			t.Description = "[Filesystem] " + t.Description
			return &t
		}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Servers().Remove(ctx, "files")
	for e, err := range h.Stream(ctx, host.Question{Text: "What does README.md say?", Model: "anthropic/claude-sonnet-4-5"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Kind)
	}
}
