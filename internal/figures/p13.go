package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/gemini"
	"github.com/tenonhq/tenon/model/openai"
)

// streamDeltas is the number of text deltas of a measured response. A tool call with arguments in pieces
// follows.
const streamDeltas = 400

// parseTime is the parsing time of each side in one round.
const parseTime = 100 * time.Millisecond

// measuredWire is one wire format: the parser of its adapter, its events as in recordings, and a struct for
// decoding them.
type measuredWire struct {
	name, title string
	parse       model.Parser
	events      [][]byte
	decode      func([]byte) error
}

// measureP13 compares the parsing of streamed responses with decoding the same events into structs by
// encoding/json, without assembling a response.
func measureP13(s *session) error {
	var worst []float64
	each := map[string][]float64{}
	wires := measuredWires()
	for range s.rounds {
		least := 0.0
		for _, w := range wires {
			r, err := w.ratio(w.answer)
			if err != nil {
				return err
			}
			each[w.name] = append(each[w.name], r)
			if least == 0 || r < least {
				least = r
			}
		}
		worst = append(worst, least)
	}
	const what = "parsing a streamed answer against encoding/json on the same events"
	s.add("P13.parse", what+", the worst of the wire formats", "ratio", worst)
	for _, w := range wires {
		s.add("P13.parse."+w.name, what+", "+w.title, "ratio", each[w.name])
	}
	for _, measure := range []func(*session) error{measureWebSearch, measureFrames, measureCacheMarks} {
		if err := measure(s); err != nil {
			return err
		}
	}
	return nil
}

// ratio returns the rate of a pass over the events, relative to decoding them by encoding/json.
func (w measuredWire) ratio(pass func() error) (float64, error) {
	plain, err := rate(w, func() error {
		for _, e := range w.events {
			if err := w.decode(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	mine, err := rate(w, pass)
	return mine / plain, err
}

// answer parses the stream once.
func (w measuredWire) answer() error {
	r, err := w.response()
	if err == nil && len(r.Message.Calls()) != 1 {
		err = fmt.Errorf("%s: the response has %d calls, want 1", w.name, len(r.Message.Calls()))
	}
	return err
}

// response parses the stream once.
func (w measuredWire) response() (*tenon.Response, error) {
	i := 0
	return w.parse(func() ([]byte, error) {
		if i == len(w.events) {
			return nil, io.EOF
		}
		i++
		return w.events[i-1], nil
	}, func(tenon.Delta) bool { return true })
}

// rate repeats one pass over the events and returns bytes per second.
func rate(w measuredWire, pass func() error) (float64, error) {
	size := 0
	for _, e := range w.events {
		size += len(e)
	}
	start := time.Now()
	passes := 0
	for time.Since(start) < parseTime {
		if err := pass(); err != nil {
			return 0, err
		}
		passes++
	}
	return float64(size*passes) / time.Since(start).Seconds(), nil
}

func measuredWires() []measuredWire {
	return []measuredWire{
		{"anthropic", "Anthropic Messages", anthropic.Parse, anthropicEvents(), into[anthropicEvent]},
		{"chat", "OpenAI Chat Completions", openai.ParseChat, chatEvents(), into[chatEvent]},
		{"responses", "OpenAI Responses", openai.ParseResponses, responsesEvents(), into[responsesEvent]},
		{"gemini", "Gemini", gemini.Parse, geminiEvents(), into[geminiEvent]},
	}
}

func into[T any](data []byte) error {
	if string(data) == "[DONE]" {
		return nil
	}
	var v T
	return json.Unmarshal(data, &v)
}

// stream collects events.
type stream [][]byte

func (s *stream) add(format string, args ...any) { *s = append(*s, fmt.Appendf(nil, format, args...)) }

// pieces calls text and args for each piece of the text and of the call's arguments.
func pieces(text, args func(string)) {
	words := strings.Fields("The weather in London is cloudy, with 15 °C and a light wind from the \\\"west\\\".")
	for i := range streamDeltas {
		text(words[i%len(words)] + " ")
	}
	for _, p := range []string{`{\"city\":`, ` \"Lon`, `don\", \"days\"`, `: 3}`} {
		args(p)
	}
}

type anthropicEvent struct {
	Type         string
	Index        int
	ContentBlock struct{ Type, ID, Name string } `json:"content_block"`
	Delta        struct {
		Type, Text  string
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	}
	Message struct{ ID, Model string }
	Usage   struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
}

func anthropicEvents() [][]byte {
	var s stream
	s.add(
		`{"type":"message_start","message":{"id":"msg_0123456789","type":"message","role":"assistant",` +
			`"model":"claude","content":[],"usage":{"input_tokens":502,"output_tokens":1}}}`)
	s.add(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	started := false
	pieces(func(p string) {
		s.add(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, p)
	}, func(p string) {
		if !started {
			started = true
			s.add(`{"type":"content_block_stop","index":0}`)
			s.add(
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_0123456789",` +
					`"name":"get_weather","input":{}}}`)
		}
		s.add(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"%s"}}`, p)
	})
	s.add(`{"type":"content_block_stop","index":1}`)
	s.add(
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},` +
			`"usage":{"output_tokens":137}}`)
	s.add(`{"type":"message_stop"}`)
	return s
}

type chatEvent struct {
	ID, Model string
	Choices   []struct {
		Delta struct {
			Content   string
			ToolCalls []struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
}

func chatEvents() [][]byte {
	const head = `{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1769088720,"model":"gpt-5",` +
		`"service_tier":"default","choices":[{"index":0,"delta":`
	var s stream
	started := false
	pieces(func(p string) {
		s.add(head+`{"content":"%s"},"finish_reason":null}],"usage":null}`, p)
	}, func(p string) {
		if !started {
			started = true
			s.add(head +
				`{"tool_calls":[{"index":0,"id":"call_0123456789","type":"function","function":{"name":"get_weather",` +
				`"arguments":""}}]},"finish_reason":null}],"usage":null}`)
		}
		s.add(head+`{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]},"finish_reason":null}],"usage":null}`, p)
	})
	s.add(head + `{},"finish_reason":"tool_calls"}],"usage":null}`)
	s.add(`{"id":"chatcmpl-0123456789","choices":[],"usage":{"prompt_tokens":502,"completion_tokens":137}}`)
	s.add("[DONE]")
	return s
}

type responsesEvent struct {
	Type        string
	OutputIndex int `json:"output_index"`
	Delta       string
	Item        struct {
		ID, Type, Name, Arguments string
		CallID                    string `json:"call_id"`
		Content                   []struct{ Type, Text string }
	}
	Response struct {
		ID, Status string
		Usage      struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		}
	}
}

func responsesEvents() [][]byte {
	var s stream
	var text strings.Builder
	n := 0
	s.add(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_0123456789","status":"in_progress",` +
			`"model":"gpt-5"}}`)
	s.add(
		`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_0123456789",` +
			`"type":"message","status":"in_progress","content":[],"role":"assistant"}}`)
	started := false
	pieces(func(p string) {
		n++
		text.WriteString(p)
		s.add(
			`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_0123456789","output_index":0,`+
				`"content_index":0,"delta":"%s","logprobs":[],"obfuscation":"2ajSAGID"}`, n, p)
	}, func(p string) {
		if !started {
			started = true
			s.add(
				`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_0123456789","type":"message",`+
					`"status":"completed","content":[{"type":"output_text","annotations":[],"text":"%s"}],`+
					`"role":"assistant"}}`, text.String())
			s.add(
				`{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_0123456789",` +
					`"type":"function_call","status":"in_progress","arguments":"","call_id":"call_0123456789",` +
					`"name":"get_weather"}}`)
		}
		s.add(
			`{"type":"response.function_call_arguments.delta","item_id":"fc_0123456789","output_index":1,"delta":"%s"}`,
			p)
	})
	s.add(
		`{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_0123456789","type":"function_call",` +
			`"status":"completed","arguments":"{\"city\": \"London\", \"days\": 3}","call_id":"call_0123456789",` +
			`"name":"get_weather"}}`)
	s.add(
		`{"type":"response.completed","response":{"id":"resp_0123456789","status":"completed","model":"gpt-5",` +
			`"usage":{"input_tokens":502,"output_tokens":137}}}`)
	return s
}

type geminiEvent struct {
	Candidates []struct {
		Content struct {
			Role  string
			Parts []struct {
				Text         string
				FunctionCall struct {
					Name string
					Args json.RawMessage
				}
			}
		}
		FinishReason string
	}
	UsageMetadata struct{ PromptTokenCount, CandidatesTokenCount int }
	ModelVersion  string
	ResponseID    string
}

func geminiEvents() [][]byte {
	const tail = `,"usageMetadata":{"promptTokenCount":502,"candidatesTokenCount":137,"totalTokenCount":639,` +
		`"promptTokensDetails":[{"modality":"TEXT","tokenCount":502}]},` +
		`"modelVersion":"gemini-3-pro","responseId":"QHiLaa6LBrb8vdIPoNztsAg"}`
	var s stream
	pieces(func(p string) {
		s.add(`{"candidates":[{"content":{"parts":[{"text":"%s"}],"role":"model"},"index":0}]`+tail, p)
	}, func(string) {}) // arguments arrive complete
	s.add(
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"get_weather","args":{"city":"London",` +
			`"days":3}},"thoughtSignature":"c2lnbmF0dXJl"}],"role":"model"},"finishReason":"STOP","index":0}]` + tail)
	return s
}
