// Model answers questions with a model that is part of the program.
package main

import (
	"context"
	"fmt"
	"iter"
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
	h, err := host.Open(ctx, host.Config{Models: map[string]tenon.Model{"echo": echo{}}})
	if err != nil {
		return err
	}
	defer h.Close()

	answer, err := h.Ask(ctx, "Good morning!")
	if err != nil {
		return err
	}
	fmt.Println(answer.Text)

	answer, err = host.Ask(ctx, h, host.Question{Text: "How are you?", Session: answer.Run.Session})
	if err != nil {
		return err
	}
	fmt.Println(answer.Text)
	fmt.Println(answer.Run.Model, "used", answer.Usage.Output, "tokens")
	return nil
}

// echo is a model: it repeats the last message in capitals.
type echo struct{}

// Name implements [tenon.Model].
func (echo) Name() string { return "example/echo" }

// Generate implements [tenon.Model]. It yields the answer in pieces, and then as a whole. A model that calls tools
// finds them in req.Tools and returns a message with parts of type [tenon.PartCall].
func (echo) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		text := fmt.Sprintf("%s (message %d)", strings.ToUpper(last.Text()), len(req.Messages))
		words := strings.SplitAfter(text, " ")
		for _, word := range words {
			if !yield(tenon.Delta{Kind: tenon.DeltaText, Text: word}, nil) {
				return
			}
		}
		yield(tenon.Delta{Response: &tenon.Response{
			Message: tenon.AssistantMessage(text),
			Stop:    tenon.StopEnd,
			Usage:   &tenon.Usage{Output: len(words)},
		}}, nil)
	}
}
