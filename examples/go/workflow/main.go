// Workflow runs the steps of a file, some of which call functions of the program. No model takes part.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	cfg, err := config.Load(ctx, config.Options{File: "tenon.yaml"})
	if err != nil {
		return err
	}
	h, err := host.Open(ctx, host.Config{
		Config:    cfg,
		Functions: []host.Function{host.NewFunction("price", "The price of a thing", price).ReadOnly()},
	})
	if err != nil {
		return err
	}
	defer h.Close()

	// Models see the workflow as a tool, too.
	result, err := host.RunWorkflow(ctx, h, host.WorkflowCall{
		Name:   "quote",
		Params: json.RawMessage(`{"things": ["tea", "cup", "spoon"]}`),
	})
	if err != nil {
		return err
	}
	fmt.Println(result.Message)

	// Each step is recorded like a tool call of a model.
	report, err := h.Runs().Open(result.Run.ID).Report(ctx)
	if err != nil {
		return err
	}
	for _, c := range report.ToolCalls {
		fmt.Println(c.Step, c.Name, string(c.Args), c.Result.Text())
	}
	return nil
}

type thing struct {
	Name string `json:"name"`
}

func price(_ context.Context, t thing) (int, error) {
	known := map[string]int{"tea": 4, "cup": 9, "spoon": 2}
	p, ok := known[t.Name]
	if !ok {
		return 0, fmt.Errorf("there is no %s", t.Name)
	}
	return p, nil
}
