// Agents lets one agent ask another, and hand the conversation over to a third. tenon.yaml describes them.
package main

import (
	"context"
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
	h, err := host.Open(ctx, host.Config{Config: cfg})
	if err != nil {
		return err
	}
	defer h.Close()

	for _, text := range []string{"How many people live in Oslo?", "I want to complain."} {
		answer, err := host.Ask(ctx, h, host.Question{Text: text, Agent: "lead"})
		if err != nil {
			return err
		}
		fmt.Println("#", text)
		for _, c := range answer.Calls { // a called agent has a separate run
			fmt.Println(c.Kind, c.Name, string(c.Args))
		}
		fmt.Println(answer.Text)
	}
	return nil
}
