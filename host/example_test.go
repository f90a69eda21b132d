package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// weather is a tool written in Go. Every type with these two methods is a Toolset. The same rules apply to it as to the
// tools of an MCP server, and its calls are recorded in the same way.
type weather struct{}

func (weather) Tools(context.Context) ([]tenon.Tool, error) {
	readOnly := true
	return []tenon.Tool{{
		Remote:      "get_weather",
		Description: "The weather at a place",
		Input:       json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}`),
		Annotations: tenon.Annotations{ReadOnly: &readOnly}, // without this, a person would have to approve each call
	}}, nil
}

func (weather) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("15°C, Cloudy")}}, nil
}

// A host with one tool written in Go answers a question. The model is the built-in script. If Model is empty, the
// configuration or the environment selects the model.
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

	snapshot, _, err := h.Tools().Snapshot(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(snapshot.Names())

	answer, err := h.Ask(ctx, "What is the weather in London?")
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Run.State, answer.Text)

	result, _, err := host.CallTool(ctx, h, "get_weather", json.RawMessage(`{"location":"London"}`), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Text())
	// Output:
	// [get_weather]
	// completed The current weather in London is 15°C and cloudy.
	// 15°C, Cloudy
}

// till is a tool that changes something, so each call needs an approval.
type till struct{}

func (till) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "get_weather", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (till) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("called with " + string(c.Arguments))}}, nil
}

// A function decides about calls that need an approval. It may change their arguments.
func ExampleConfig_approve() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	h, err := host.Open(ctx, host.Config{
		Home:     dir,
		Model:    host.DemoModel,
		Toolsets: map[string]tenon.Toolset{"till": till{}},
		Approve: func(_ context.Context, p host.Approval) (host.Ruling, error) {
			fmt.Println("asked about", p.Server, p.Remote, string(p.Arguments))
			return host.Ruling{Verdict: tenon.Allow, By: "the program", Arguments: json.RawMessage(`{"location":"Oslo"}`)}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	for e, err := range h.Stream(ctx, host.Question{Text: "What is the weather in London?"}) {
		if err != nil {
			panic(err)
		}
		if o, ok := e.Value().(*view.Outcome); ok {
			fmt.Println(o.Result.Text())
		}
	}
	// Output:
	// asked about till get_weather {"location":"London"}
	// called with {"location":"Oslo"}
}
