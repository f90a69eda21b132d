// Tool offers functions of the program to a model: to every question, and to a single one.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tenonhq/tenon/host"
)

// Stay is the argument of a tool. Its JSON Schema is inferred: the tags have names and descriptions, and a field
// without omitempty is required.
type Stay struct {
	City   string `json:"city" jsonschema:"where to stay"`
	Nights int    `json:"nights,omitempty" jsonschema:"1 if it is left out"`
}

// Offer is the result of a tool, which the model sees as JSON.
type Offer struct {
	Hotel string `json:"hotel"`
	Price int    `json:"price"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// A function marked as read-only runs without approval, unless a rule asks for it.
	hotels := host.NewFunction("find_hotel", "Finds a hotel", findHotel).ReadOnly()
	h, err := host.Open(ctx, host.Config{
		Model:     "script:answers.yaml", // in place of a model
		Functions: []host.Function{hotels},
	})
	if err != nil {
		return err
	}
	defer h.Close()

	answer, err := h.Ask(ctx, "Find me a hotel in Oslo for two nights.")
	if err != nil {
		return err
	}
	fmt.Println(answer.Calls[0].Result.Text())
	fmt.Println(answer.Text)

	// A tool for one question can use what only this caller has.
	birthday := time.Date(1990, time.May, 4, 0, 0, 0, 0, time.UTC)
	mine := host.NewFunction("birthday", "The user's birthday", func(context.Context, struct{}) (string, error) {
		return birthday.Format("2 January"), nil
	}).ReadOnly()
	answer, err = host.Ask(ctx, h, host.Question{Text: "When is my birthday?", Functions: []host.Function{mine}})
	if err != nil {
		return err
	}
	fmt.Println(answer.Text)
	return nil
}

func findHotel(_ context.Context, s Stay) (Offer, error) {
	if s.City != "Oslo" {
		return Offer{}, fmt.Errorf("no hotels are known in %s", s.City) // the model sees the error
	}
	return Offer{Hotel: "Fjord", Price: 120 * max(s.Nights, 1)}, nil
}
