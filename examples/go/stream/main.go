// Stream prints an answer while it arrives, and the tool calls on the way to it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	weather := host.NewFunction("get_weather", "The weather at a place", getWeather).ReadOnly()
	h, err := host.Open(ctx, host.Config{
		Model:     host.DemoModel, // a built-in script
		Functions: []host.Function{weather},
	})
	if err != nil {
		return err
	}
	defer h.Close()

	for e, err := range h.Stream(ctx, host.Question{Text: "What is the weather in London?"}) {
		if err != nil {
			return err
		}
		switch d := e.Value().(type) {
		case *view.Text:
			fmt.Print(d.Text)
		case *view.ToolCall:
			fmt.Printf("[%s] calls %s with %s\n", e.Step, d.Name, d.Arguments)
		case *view.Outcome:
			fmt.Printf("[%s] returned %s\n", e.Step, d.Result.Text())
		case *view.Failure:
			fmt.Printf("[%s] failed: %v\n", e.Step, d.Error)
		case *view.Done:
			fmt.Printf("\n%s: %s\n", d.State, d.Stop)
		}
	}
	return nil
}

type place struct {
	Location string `json:"location" jsonschema:"name of a city"`
}

func getWeather(context.Context, place) (string, error) {
	return "15°C, Cloudy", nil
}
