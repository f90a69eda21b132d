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

// fuzzParser feeds lines as events. Whatever they are there is an answer or an
// error, the arguments of calls are JSON, and the answer can go back.
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

// FuzzFields holds the scanner to encoding/json over valid input, and to no
// panic over all input.
func FuzzFields(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[1,{"c":"\"]}"}],"d":null}`, ` { "a" : "x\\" , "b":{}} `, `[1,"a,b",[2]]`, `{"a"`, `"`, `{"\u0061":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got [][2]string
		for k, v := range model.Fields(data) {
			got = append(got, [2]string{string(k), string(v)})
		}
		n := 0
		for range model.Elements(data) {
			n++
		}
		_ = model.String(data)
		if !json.Valid(data) {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && len(list) != n {
			t.Errorf("%s has %d elements, found %d", data, len(list), n)
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
			return
		}
		for i := 0; dec.More(); i++ {
			k, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			var v json.RawMessage
			if err := dec.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if i >= len(got) || model.DecodeBody([]byte(got[i][0])) != k || got[i][1] != string(v) {
				t.Fatalf("member %d of %s: %q", i, data, got)
			}
		}
	})
}
