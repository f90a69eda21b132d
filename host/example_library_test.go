package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// shopServer starts a minimal MCP server with three tools.
func shopServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments struct{ A, B int }
			}
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || q.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{}`
		switch q.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sums","version":"1"}}`
		case "tools/list":
			result = `{"tools":[
				{"name":"add","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}},
				{"name":"greet","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"name":{"type":"string"}}}},
				{"name":"reset","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, q.Params.Arguments.A+q.Params.Arguments.B)
		case "server/discover":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, q.ID)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
	}))
}

// A host is opened with a configuration file. It lists the tools of all configured servers, and calls them.
func ExampleOpen() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	sums := shopServer()
	defer sums.Close()
	file := filepath.Join(dir, "tenon.yaml")
	_ = os.WriteFile(file, []byte("version: 1\nservers: {sums: {url: "+sums.URL+"}}\n"), 0o600)

	cfg, err := config.Load(ctx, config.Options{File: file})
	if err != nil {
		log.Fatal(err)
	}
	h, err := host.Open(ctx, host.Config{Config: cfg, Home: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	snapshot, _, err := h.Tools().Snapshot(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(snapshot.Names())
	result, _, err := host.CallTool(ctx, h, "add", json.RawMessage(`{"a":2,"b":40}`), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text())
	// Output:
	// [add greet reset]
	// 42
}

// Functions can be added while a host is open. The next run offers them to the model.
func ExampleNewToolset() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	h, err := host.Open(ctx, host.Config{Home: dir, Model: host.DemoModel})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	type place struct {
		Location string `json:"location"`
	}
	weather := host.NewFunction("get_weather", "The weather at a place", func(_ context.Context, p place) (string, error) {
		return "15°C, Cloudy in " + p.Location, nil
	}).ReadOnly() // without this, the call would need an approval
	own, err := host.NewToolset(weather)
	if err != nil {
		log.Fatal(err)
	}
	if err := h.Tools().Add(ctx, "own", own); err != nil {
		log.Fatal(err)
	}
	for e, err := range h.Stream(ctx, host.Question{Text: "What is the weather in London?"}) {
		if err != nil {
			log.Fatal(err)
		}
		if o, ok := e.Value().(*view.Outcome); ok {
			fmt.Println(o.Result.Text())
		}
	}
	// Output:
	// 15°C, Cloudy in London
}

// A single tool of a server can be defined in the configuration, without listing the tools of the server. Or the tools
// are listed, filtered and renamed.
func ExampleServers_discovered() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	sums := shopServer()
	defer sums.Close()
	no := false
	h, err := host.Open(ctx, host.Config{Home: dir, Config: &config.Config{
		Servers: map[string]servers.Config{"sums": {URL: sums.URL, LoadTools: &no}},
		Tools: map[string]catalog.Tool{"plus": {Server: "sums", RemoteName: "add", Description: "Adds",
			Arguments: []catalog.Argument{{Name: "a", Type: "integer"}, {Name: "b", Type: "integer"}}}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	show := func() {
		snapshot, _, err := h.Tools().Snapshot(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(snapshot.Names())
	}
	show()
	err = h.Servers().Add(ctx, "found", servers.Config{URL: sums.URL, Include: []string{"*e*"}, Exclude: []string{"reset"},
		Transform: []catalog.Transform{{Prefix: "found_"}}})
	if err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// [plus]
	// [found_greet plus]
}
