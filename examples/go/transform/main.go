// Transform connects an MCP server, and selects, renames and changes its tools.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	h, err := host.Open(ctx, host.Config{})
	if err != nil {
		return err
	}
	defer h.Close()

	// Any MCP server will do, such as Command: "npx", Args: {"-y", "@modelcontextprotocol/server-filesystem", "."}
	// or URL: "https://mcp.example.com". The same keys work under servers in tenon.yaml,
	// where ${NAME} is replaced by a variable; in Go, use os.Getenv.
	err = h.Servers().Add(ctx, "demo", host.ServerConfig{
		Command: "tenon", Args: []string{"testserver", "--stdio"},
		Include:   []string{"add", "greet", "count*"}, // globs of names
		Transform: []host.Transform{{Prefix: "demo_"}, {Func: readOnly}},
	})
	if err != nil {
		return err
	}
	tools, problems, err := h.Tools().List(ctx)
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Println("problem:", p.Server, p.Err)
	}
	for _, t := range tools {
		fmt.Println(t.Name, "-", t.Description)
	}

	result, _, err := host.CallTool(ctx, h, "demo_add", json.RawMessage(`{"a": 2, "b": 40}`), nil)
	if err != nil {
		return err
	}
	fmt.Println(result.Text())
	return nil
}

// readOnly gets each tool and returns it as the model is to see it, or nil to leave it out.
func readOnly(t tenon.Tool) *tenon.Tool {
	if !t.Annotations.IsReadOnly() {
		return nil
	}
	t.Description = strings.TrimSuffix(t.Description, ".") + " (changes nothing)"
	return &t
}
