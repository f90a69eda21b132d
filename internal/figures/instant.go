package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/tenonhq/tenon"
)

// instantTurns is the number of turns with a tool call in a run of the instant model. One turn without a call
// follows.
const instantTurns = 20

// instantModel responds at once. It calls get_weather in each of the first instantTurns turns, and then
// returns a text. The cost of a run with it is the cost of everything except the model.
type instantModel struct{}

// Name implements [tenon.Model].
func (instantModel) Name() string { return "instant/model" }

// Generate implements [tenon.Model].
func (instantModel) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		turn := len(req.Messages) / 2 // after the question, each turn has a response and its results
		r := &tenon.Response{Stop: tenon.StopToolUse, Usage: &tenon.Usage{Input: 100, Output: 20}, Model: "instant",
			Message: &tenon.Message{Role: tenon.RoleAssistant}}
		say := "Let me look. "
		if turn >= instantTurns {
			r.Stop, say = tenon.StopEnd, "It rains in London."
		}
		r.Message.Parts = []tenon.Part{{Type: tenon.PartText, Text: say}}
		if turn < instantTurns {
			r.Message.Parts = append(r.Message.Parts, tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{
				ID: "call_" + strconv.Itoa(turn), Name: "get_weather",
				Arguments: json.RawMessage(`{"city":"London"}`)}})
		}
		if yield(tenon.Delta{Kind: tenon.DeltaText, Text: say}, nil) {
			yield(tenon.Delta{Kind: tenon.DeltaResponse, Response: r}, nil)
		}
	}
}

// instantTools has one read-only tool that returns at once.
type instantTools struct{}

// instantServer is the server name of the tool.
const instantServer = "weather"

// Tools implements [tenon.Toolset].
func (instantTools) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Server: instantServer, Remote: "get_weather", Name: "get_weather",
		Description: "Weather of a city.",
		Input:       json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

// Call implements [tenon.Toolset].
func (instantTools) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("Rain, 12 °C, wind from the west, " +
		strconv.Itoa(len(c.Arguments)))}}, nil
}

// finished returns an error unless the events belong to a complete run of the instant model.
func finished(events []tenon.Event) error {
	results := 0
	for _, e := range events {
		switch e.Kind {
		case "result":
			results++
		case tenon.EventDone:
			var d tenon.DoneData
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return err
			}
			if d.State != tenon.RunCompleted || results != instantTurns {
				return fmt.Errorf("a measured run ended as %s with %d tool results of %d: %v", d.State, results,
					instantTurns, d.Error)
			}
			return nil
		}
	}
	return fmt.Errorf("a measured run did not end; it has %d events", len(events))
}

var (
	_ tenon.Model   = instantModel{}
	_ tenon.Toolset = instantTools{}
)
