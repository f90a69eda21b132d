package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/gemini"
	"github.com/tenonhq/tenon/model/openai"
)

const (
	earlyTurn     = 10
	lateTurn      = 200
	conversations = 40 // conversations in one round
	toolsOffered  = 10
)

// measureGrowth compares the encoding of a request late in a conversation with one early in it. It measures
// the time from the call of the adapter until the request reaches the HTTP transport. For comparison, it also
// measures the time until the transport has read the bytes, whose number grows in any case.
func measureGrowth(s *session) error {
	var worst, worstSent []float64
	each := map[string][]float64{}
	for range s.rounds {
		var round, sent float64
		for provider := range growing {
			early, late, err := growth(s.ctx, provider)
			if err != nil {
				return err
			}
			r := percentile(late.encoded, 50) / percentile(early.encoded, 50)
			each[provider] = append(each[provider], r)
			round = max(round, r)
			sent = max(sent, percentile(late.sent, 50)/percentile(early.sent, 50))
		}
		worst, worstSent = append(worst, round), append(worstSent, sent)
	}
	what := fmt.Sprintf("encoding a request at turn %d against turn %d", lateTurn, earlyTurn)
	s.add("P5.growth", what+", the worst of the adapters", "ratio", worst)
	for _, provider := range slices.Sorted(maps.Keys(growing)) {
		s.add("P5.growth."+provider, what+", "+growing[provider], "ratio", each[provider])
	}
	s.add("P5.growth.sent", "the same with reading the request's bytes", "ratio", worstSent)
	return nil
}

// growing lists the measured adapters.
var growing = map[string]string{"anthropic": "Anthropic Messages", "openai": "OpenAI Chat Completions",
	"responses": "OpenAI Responses", "gemini": "Gemini"}

// encodings holds durations of requests, in nanoseconds.
type encodings struct{ encoded, sent []int64 }

// growth runs complete conversations with an adapter, with one request for each turn as in a run. It returns
// the times of the early and of the late turns.
func growth(ctx context.Context, provider string) (early, late encodings, err error) {
	t := &stopwatch{}
	m, err := openAdapter(provider, t)
	if err != nil {
		return early, late, err
	}
	tools := offeredTools()
	for range conversations {
		messages := []*tenon.Message{tenon.UserMessage("What is the weather in all the cities of the list?")}
		for turn := 1; turn <= lateTurn; turn++ {
			req := &tenon.Request{System: strings.Repeat("You are helpful. ", 20), Messages: messages, Tools: tools}
			t.asked, t.reached, t.read = time.Now(), time.Time{}, time.Time{}
			for _, err := range m.Generate(ctx, req) {
				if t.reached.IsZero() {
					return early, late, fmt.Errorf("%s: no request was made: %w", provider, err)
				}
			}
			var e *encodings
			switch {
			case turn > earlyTurn-3 && turn <= earlyTurn:
				e = &early
			case turn > lateTurn-3:
				e = &late
			default:
				e = &encodings{}
			}
			e.encoded = append(e.encoded, int64(t.reached.Sub(t.asked)))
			e.sent = append(e.sent, int64(t.read.Sub(t.asked)))
			messages = append(messages, exchange(turn)...)
		}
	}
	return early, late, nil
}

func openAdapter(provider string, t http.RoundTripper) (tenon.Model, error) {
	never := 0
	cfg := model.Config{Name: provider, Provider: provider, Model: "measured", APIKey: tenon.NewSecret("none"),
		Retries: &never}
	env := model.Env{Transport: t}
	switch provider {
	case "anthropic":
		return anthropic.New(cfg, env)
	case "gemini":
		return gemini.New(cfg, env)
	case "responses":
		cfg.Provider, cfg.API = "openai", model.APIResponses
		return openai.NewResponses(cfg, env)
	}
	return openai.New(cfg, env)
}

// stopwatch is an HTTP transport that records when a request reaches it and when its body is read. It then
// refuses the request.
type stopwatch struct{ asked, reached, read time.Time }

var errMeasured = errors.New("measured, and not sent")

// RoundTrip implements [http.RoundTripper].
func (t *stopwatch) RoundTrip(r *http.Request) (*http.Response, error) {
	t.reached = time.Now()
	_, err := io.Copy(io.Discard, r.Body)
	t.read = time.Now()
	return nil, errors.Join(errMeasured, err, r.Body.Close())
}

// offeredTools returns the tools of every request.
func offeredTools() []tenon.Tool {
	var tools []tenon.Tool
	for i := range toolsOffered {
		tools = append(tools, tenon.Tool{
			Server: "weather", Remote: fmt.Sprintf("get_weather_%d", i), Name: fmt.Sprintf("get_weather_%d", i),
			Description: "Returns the weather of a city, with temperature, wind and what the sky looks like.",
			Input: json.RawMessage(
				`{"type":"object","properties":{"city":{"type":"string","description":"name of the city"}},` +
					`"required":["city"]}`),
		})
	}
	return tools
}

// exchange returns the messages that one turn adds to a conversation: a response with a tool call, and its
// result of half a kilobyte.
func exchange(turn int) []*tenon.Message {
	id := fmt.Sprintf("call_%d", turn)
	return []*tenon.Message{
		{Role: tenon.RoleAssistant, Parts: []tenon.Part{
			{Type: tenon.PartText, Text: "Now I look at the next city of the list."},
			{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: id, Name: "get_weather_0",
				Arguments: json.RawMessage(`{"city":"London"}`)}},
		}},
		{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: &tenon.ToolResult{
			ID: id, Name: "get_weather_0",
			Content: []tenon.Content{tenon.Text(strings.Repeat("Rain, 12 °C, wind from the west. ", 15))},
		}}}},
	}
}
