package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// weather is a tool in Go: anything with these two methods is a Toolset, and runs
// under the same rules and records as the tools of an MCP server.
type weather struct{}

func (weather) Tools(context.Context) ([]tenon.Tool, error) {
	readOnly := true
	return []tenon.Tool{{
		Remote:      "get_weather",
		Description: "The weather at a place",
		Input:       json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}`),
		Annotations: tenon.Annotations{ReadOnly: &readOnly}, // else a person would be asked
	}}, nil
}

func (weather) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("15°C, Cloudy")}}, nil
}

// A host with one tool of its own answers a question. The model is the built-in
// script; leave Model out to use what the configuration or the environment names.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	h, err := host.Open(ctx, host.Config{
		Home:     dir,
		Model:    host.DemoModel,
		Toolsets: map[string]tenon.Toolset{"weather": weather{}},
	})
	if err != nil {
		panic(err)
	}
	defer h.Close()

	snapshot, _, err := h.Tools(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(snapshot.Names())

	for e, err := range h.Run(ctx, host.Question{Text: "What is the weather in London?"}) {
		if err != nil {
			panic(err)
		}
		if e.Kind == tenon.EventDone {
			var done tenon.DoneData
			if err := json.Unmarshal(e.Data, &done); err != nil {
				panic(err)
			}
			fmt.Println(done.State, done.Answer)
		}
	}

	result, _, err := h.CallTool(ctx, "get_weather", json.RawMessage(`{"location":"London"}`), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Text())
	// Output:
	// [get_weather]
	// completed The current weather in London is 15°C and cloudy.
	// 15°C, Cloudy
}
