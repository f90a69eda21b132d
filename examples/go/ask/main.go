// Ask asks a question, continues the conversation, and asks for an answer of a Go type.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tenonhq/tenon/host"
)

// River is the answer to a question. The model gets its JSON Schema.
type River struct {
	Name   string `json:"name"`
	Length int    `json:"km" jsonschema:"length in kilometres"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// A script plays the model here. Name another one, such as "anthropic/claude-sonnet-4-5", or none: then the
	// environment decides, by ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY.
	h, err := host.Open(ctx, host.Config{Model: "script:answers.yaml"})
	if err != nil {
		return err
	}
	defer h.Close()

	answer, err := h.Ask(ctx, "Which river flows through London?")
	if err != nil {
		return err
	}
	fmt.Println(answer.Text)

	// The session of the run continues the conversation.
	session := answer.Run.Session
	answer, err = host.Ask(ctx, h, host.Question{Text: "And through Paris?", Session: session})
	if err != nil {
		return err
	}
	fmt.Printf("%s (%d tokens)\n", answer.Text, answer.Usage.Input+answer.Usage.Output)

	river, _, err := host.AskFor[River](ctx, h, host.Question{Text: "How long is that one?", Session: session})
	if err != nil {
		return err
	}
	fmt.Printf("The %s is %d km long.\n", river.Name, river.Length)
	return nil
}
