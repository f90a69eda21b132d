package model_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/gemini"
	"github.com/tenonhq/tenon/model/openai"
)

// fuzzParser parses lines as the events of a stream. The result must be an answer or an error, the arguments of calls
// must be JSON, and the answer must be encodable again.
func fuzzParser(f *testing.F, wire string, parse model.Parser) {
	files, err := filepath.Glob("testdata/" + wire + "-*.sse")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(strings.Join(payloads(string(body)), "\n")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Split(data, []byte("\n"))
		resp, err := parse(func() ([]byte, error) {
			if len(lines) == 0 {
				return nil, io.EOF
			}
			line := lines[0]
			lines = lines[1:]
			return line, nil
		}, func(d tenon.Delta) bool { return d.Kind != "" })
		if (resp == nil) == (err == nil) {
			t.Fatalf("%v, %v", resp, err)
		}
		if err != nil {
			return
		}
		for _, c := range resp.Message.Calls() {
			if c.Name == "" || (c.Malformed == "") != json.Valid(c.Arguments) {
				t.Errorf("call %+v", c)
			}
		}
		req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q"), resp.Message}}
		for w := range wires {
			_ = sent(t, w, model.Config{BaseURL: "http://localhost", Quirks: model.QuirkConfig{
				EchoReasoning: []string{model.ReasoningContent, model.Reasoning, model.ReasoningDetails}}}, req)
		}
		if _, err := json.Marshal(resp); err != nil {
			t.Errorf("the answer cannot be kept: %v", err)
		}
	})
}

func FuzzAnthropicStream(f *testing.F) { fuzzParser(f, "anthropic", anthropic.Parse) }

func FuzzChatStream(f *testing.F) { fuzzParser(f, "chat", openai.ParseChat) }

func FuzzResponsesStream(f *testing.F) { fuzzParser(f, "responses", openai.ParseResponses) }

func FuzzGeminiStream(f *testing.F) { fuzzParser(f, "gemini", gemini.Parse) }
