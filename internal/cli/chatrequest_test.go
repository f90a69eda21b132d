package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/tui"
)

// shownRequest is a request without functions, for comparison.
func shownRequest(r tui.Request) tui.Request {
	r.Inputs = append([]tui.Input(nil), r.Inputs...)
	for i := range r.Inputs {
		r.Inputs[i].Check = nil
	}
	return r
}

// TestUX3_RequestsOf describes requests of servers for the chat program.
func TestUX3_RequestsOf(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	form := func(message, properties, required string) string {
		return `{"q":{"method":"elicitation/create","params":{"message":` + message + `,"requestedSchema":{"type":"object","properties":{` +
			properties + `},"required":[` + required + `]}}}}`
	}
	for name, tt := range map[string]struct {
		requests string
		want     []tui.Request
	}{
		"a form": {form(`"When?\n\nAnd where?"`, `"date":{"type":"string","format":"date","description":"the\n evening"},
			"n":{"type":"integer","title":"How many","minimum":1,"maximum":12,"default":2},"x":{"type":"number"},
			"sure":{"type":"boolean"},"seat":{"type":"string","oneOf":[{"const":"in","title":"Inside"},{"const":"out"}],"default":"in"},
			"with":{"type":"array","maxItems":2,"items":{"enum":["dog","cat"]},"default":["cat"]},"note":{"type":"string","maxLength":40}`, `"date"`),
			[]tui.Request{{Key: "q", Form: true, Text: []string{"When?", "", "And where?"}, Fields: [][2]string{{"asks for", "date, n, x, sure, seat, with, note"}},
				Inputs: []tui.Input{
					{Name: "date", Type: "string", Kind: "a date such as 2026-11-21", Help: "the evening", Required: true},
					{Name: "n", Title: "How many", Type: "integer", Kind: "a whole number, at least 1, at most 12", Value: raw("2")},
					{Name: "x", Type: "number", Kind: "a number, may be empty"},
					{Name: "sure", Type: "boolean", Kind: "true or false; Left and Right choose, may be empty"},
					{Name: "seat", Type: "string", Kind: "a text", Choices: []string{"Inside (in)", "out"}, Value: raw(`"in"`), Text: "Inside (in)"},
					{Name: "with", Type: "array", Kind: "some of 1 dog, 2 cat; with commas, at most 2 of them", Value: raw(`["cat"]`), Text: "cat"},
					{Name: "note", Type: "string", Kind: "a text, at most 40 characters, may be empty"}}}}},
		"a secret": {form(`"Sign in"`, `"password":{"type":"string"}`, ``), []tui.Request{{Key: "q", Form: true, Text: []string{"Sign in"},
			Warn: `server "s" asks for a secret: it gets what you type, and the run's journal keeps it`, Fields: [][2]string{{"asks for", "password"}},
			Inputs: []tui.Input{{Name: "password", Type: "string", Kind: "a text, may be empty"}}}}},
		"without fields": {form(`"Sure?"`, ``, ``), []tui.Request{{Key: "q", Form: true, Text: []string{"Sure?"}}}},
		"a page": {`{"u":{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://exаmple.org/a?b=c"}}}`,
			[]tui.Request{{Key: "u", Head: "the server wants you to visit a page", Text: []string{"Sign in"}, Yes: "I opened it", Copy: "https://exаmple.org/a?b=c",
				Fields: [][2]string{{"page", `https://ex\u0430mple.org/a?b=c`}, {"leads to", `ex\u0430mple.org`}}, Warn: "open it yourself, if you know this site: tenon opens nothing"}}},
		"an answer of the model": {`{"s":{"method":"sampling/createMessage","params":{"systemPrompt":"Be short.","maxTokens":50,"messages":[{"role":"user","content":{"type":"text","text":"The capital?"}}]}}}`,
			[]tui.Request{{Head: "the server wants an answer of the model", Yes: "the model may answer", Decides: true, Text: []string{"system:", "Be short.", "user:", "The capital?"},
				Fields: [][2]string{{"answer", "50 tokens at most"}}}}},
		"hidden characters": {form(`"a\u001b[2Jb\u202ec"`, `"x\u202e":{"type":"string","title":"t\u001b[31m"}`, ``),
			[]tui.Request{{Key: "q", Form: true, Text: []string{`a\u{1b}[2Jb\u{202e}c`}, Fields: [][2]string{{"asks for", `x\u202e`}},
				Inputs: []tui.Input{{Name: "x\u202e", Title: "t\u001b[31m", Type: "string", Kind: "a text, may be empty"}}}}},
		"several": {`{"b":{"method":"elicitation/create","params":{"message":"two","requestedSchema":{"type":"object","properties":{}}}},"a":{"method":"elicitation/create","params":{"mode":"url","message":"one","url":"https://example.org/"}}}`,
			[]tui.Request{{Key: "a", Head: "the server wants you to visit a page", Text: []string{"one"}, Yes: "I opened it", Copy: "https://example.org/",
				Fields: [][2]string{{"page", "https://example.org/"}, {"leads to", "example.org"}}, Warn: "open it yourself, if you know this site: tenon opens nothing"},
				{Key: "b", Form: true, Text: []string{"two"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []tui.Request
			for _, r := range requestsOf("s", raw(tt.requests)) {
				got = append(got, shownRequest(r))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	for name, requests := range map[string]string{"no object": `[]`, "no URL": `{"u":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"file:///etc"}}}`} {
		if got := requestsOf("s", raw(requests)); len(got) != 1 || !got[0].Broken || got[0].Warn == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestUX3_OptionsMean checks that the choice that a person sees is the value that is sent, also if a server gives one
// option the title of another.
func TestUX3_OptionsMean(t *testing.T) {
	list := requestsOf("s", json.RawMessage(`{"q":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{
		"do":{"type":"string","oneOf":[{"const":"delete","title":"keep"},{"const":"keep","title":"delete"},{"const":"2","title":"two"}]},
		"many":{"type":"array","items":{"anyOf":[{"const":"a","title":"Ann"},{"const":"b"}]}},"sure":{"type":"boolean"},"n":{"type":"integer"}}}}}}`))
	inputs := list[0].Inputs
	if d := cmp.Diff([]string{"keep (delete)", "delete (keep)", "two (2)"}, inputs[0].Choices); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct {
		field      int
		text, want string
	}{{0, "keep (delete)", `"delete"`}, {0, "delete (keep)", `"keep"`}, {0, "two (2)", `"2"`}, {0, "2", `"2"`}, {0, "nothing", "must be one of"},
		{1, "ann, 2", `["a","b"]`}, {1, "x", "must be some of"}, {2, "yes", "true"}, {2, "maybe", "must be true or false"},
		{3, " 7 ", "7"}, {3, "7.5", "must be a whole number"}} {
		got, err := inputs[tt.field].Check(tt.text)
		if err != nil {
			got = json.RawMessage(err.Error())
		}
		if !strings.HasPrefix(string(got), tt.want) {
			t.Errorf("%q: %s, want %s", tt.text, got, tt.want)
		}
	}
}
