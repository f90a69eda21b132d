package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// turns returns a conversation of n turns. Each has a call and a result of about a kilobyte.
func turns(n int) []*tenon.Message {
	msgs := []*tenon.Message{tenon.UserMessage("do it")}
	body := bytes.Repeat([]byte("result of a tool "), 60)
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		msgs = append(msgs, assistant(text("next"), callPart(id, "get_weather", `{"location":"London"}`)),
			results(&tenon.ToolResult{ID: id, Content: []tenon.Content{tenon.Text(string(body))}}))
	}
	return msgs
}

// BenchmarkEncodeTurn encodes the request of turn n of a conversation whose earlier turns were
// encoded before, as in a run (figure P5.growth: turn 200 costs at most twice as much as turn 10).
func BenchmarkEncodeTurn(b *testing.B) {
	tools := []tenon.Tool{{Name: "get_weather", Description: "Weather", Input: json.RawMessage(`{"type":"object"}`)}}
	for wire := range wires {
		for _, n := range []int{10, 200} {
			b.Run(fmt.Sprintf("%s/turn%d", wire, n), func(b *testing.B) {
				old := turns(n - 1)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					m := open(b, wire, "http://localhost", model.Env{Transport: &capture{}}).(interface {
						EncodedLen(req *tenon.Request) (int64, error)
					})
					req := &tenon.Request{System: "s", Tools: tools}
					for _, part := range [][]*tenon.Message{old[:len(old)-2], old} {
						req.Messages = part
						if _, err := m.EncodedLen(req); err != nil {
							b.Fatal(err)
						}
					}
					req.Messages = append(old[:len(old):len(old)], turns(1)[1:]...)
					b.StartTimer()
					if _, err := m.EncodedLen(req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkParse compares the parsers with encoding/json, which decodes the same events to structs
// (figure P13.parse: at least 0.8 of its rate).
func BenchmarkParse(b *testing.B) {
	if _, err := os.Stat(sharedStreams); err != nil {
		b.Skip("no recorded streams beside the repository")
	}
	var all []recorded

	for _, name := range []string{"vercel-ai/anthropic/anthropic-code-execution-20250825.2.chunks.txt", "vercel-ai/deepseek/chat/deepseek-text.chunks.txt"} {
		all = append(all, chunks(b, name, sharedStreams+"/"+name)[0])
	}
	type event struct {
		Type  string
		Index int
		Delta struct {
			Type        string
			Text        string
			PartialJSON string `json:"partial_json"`
		}
		ContentBlock struct{ Type, ID, Name string } `json:"content_block"`
		Choices      []struct {
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
			Output int `json:"output_tokens"`
		}
	}
	for _, r := range all {
		parse := wires[r.wire]
		var size int64
		for _, e := range r.events {
			size += int64(len(e))
		}
		events := make([][]byte, len(r.events))
		for i, e := range r.events {
			events[i] = []byte(e)
		}
		b.Run(r.wire+"/tenon", func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				i := 0
				_, err := parse(func() ([]byte, error) {
					if i == len(events) {
						return nil, io.EOF
					}
					i++
					return events[i-1], nil
				}, func(tenon.Delta) bool { return true })
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(r.wire+"/encoding-json", func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				for _, e := range events {
					var v event
					_ = json.Unmarshal(e, &v) // [DONE] is not JSON
				}
			}
		})
	}
}
