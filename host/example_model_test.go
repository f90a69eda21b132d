package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

// parrot is a model that is part of the program. It calls the offered tool, and then repeats the result of the tool
// word by word.
type parrot struct{}

func (parrot) Name() string { return "birds/parrot" }

func (parrot) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		m := &tenon.Message{Role: tenon.RoleAssistant}
		last := req.Messages[len(req.Messages)-1]
		if last.Role != tenon.RoleTool {
			call := &tenon.ToolCall{ID: "1", Name: req.Tools[0].Name, Arguments: json.RawMessage(`{}`)}
			m.Parts = []tenon.Part{{Type: tenon.PartCall, Call: call}}
			yield(tenon.Delta{Response: &tenon.Response{Message: m, Stop: tenon.StopToolUse}}, nil)
			return
		}
		text := "It is " + last.Parts[0].Result.Content[0].Text + ", it is."
		for _, word := range strings.SplitAfter(text, " ") {
			if !yield(tenon.Delta{Kind: tenon.DeltaText, Text: word}, nil) {
				return
			}
		}
		m.Parts = []tenon.Part{{Type: tenon.PartText, Text: text}}
		yield(tenon.Delta{Response: &tenon.Response{Message: m, Stop: tenon.StopEnd, Usage: &tenon.Usage{Input: 3, Output: 5}}}, nil)
	}
}

// counted wraps a toolset and prints its calls.
type counted struct {
	tenon.Toolset
	server string
}

func (c counted) Call(ctx context.Context, call tenon.Call) (*tenon.Result, error) {
	fmt.Printf("calls %s of %s\n", call.Tool, c.server)
	return c.Toolset.Call(ctx, call)
}

// This example streams the answer of a model that is part of the program, and prints every tool call.
func ExampleHost_Stream() {
	ctx := context.Background()
	home, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(home)
	h, err := host.Open(ctx, host.Config{
		Home:     home,
		Models:   map[string]tenon.Model{"parrot": parrot{}},
		Toolsets: map[string]tenon.Toolset{"wall": wallClock{}},
		Wrap:     func(server string, t tenon.Toolset) tenon.Toolset { return counted{t, server} },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	screen := io.Discard // os.Stdout, say
	for e, err := range h.Stream(ctx, host.Question{Text: "What time is it?"}) {
		if err != nil {
			log.Fatal(err) // the run was not started, or following it failed
		}
		switch d := e.Value().(type) {
		case *view.Text: // a piece of the text
			fmt.Fprint(screen, d.Text)
		case *view.Done: // how the run ended
			if d.Error != nil {
				log.Fatal(d.Error)
			}
			fmt.Println(d.State, d.Stop, d.Answer)
		}
	}
	// Output:
	// calls now of wall
	// completed stop It is noon, it is.
}
