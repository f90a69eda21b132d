package textcall

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

var tools = []tenon.Tool{
	{Name: "get", Input: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"s":{"type":"string"}}}`)},
	{Name: "ping", Input: []byte(`{"type":"object"}`)},
}

func TestMD11_Object(t *testing.T) {
	tests := []struct{ text, want, err string }{
		{`{"a": 1, "b": [true, null, {"c": -1.5e3}]} rest`, `{"a":1,"b":[true,null,{"c":-1.5e3}]}`, ""},
		{`{}`, `{}`, ""},
		{`{'a': "it's", "b": 'x',}`, `{"a":"it's","b":"x"}`, ""},
		{`{“a”: „x“, "b": «y»}`, "", "a value is neither"},
		{`{"a": "\u00e9\n\/", 'b': '\''}`, `{"a":"\u00e9\n\/","b":"'"}`, ""},
		{`{"a": "\q"}`, "", "a string has an unknown escape"},
		{`{"a": "\u00zz"}`, "", "there is no JSON object"},
		{`{"a": [1, 2`, `{"a":[1,2]}`, ""},
		{`{"a": {`, "", "the text ends"},
		{`{"a": 01}`, "", "a value is neither"},
		{`{,}`, "", "a key is not in quotes"},
		{`{"a" 1}`, "", "a string does not end where"},
		{`{"a": 1 "b": 2}`, "", "a comma is missing"},
		{`[1]`, "", "there is no JSON object"},
		{``, "", "the text ends"},
		{"{\"a\": \"\xff\"}", "", "a value is neither"},
		{strings.Repeat(`{"a":`, 100), "", "the object is nested too deeply"},
	}
	for _, tt := range tests {
		got, n, repairs, err := Object(tt.text)
		switch {
		case tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.err)), tt.err == "" && err != nil:
			t.Errorf("%q: %v, want %q", tt.text, err, tt.err)
		case string(got) != tt.want || n > len(tt.text):
			t.Errorf("%q: %s, %d, %q; want %s", tt.text, got, n, repairs, tt.want)
		}
	}
}

func TestMD11_Split(t *testing.T) {
	tests := []struct{ text, visible, hidden string }{
		{"no tags [x] <b>", "no tags [x] <b>", ""},
		{"a<think>b</think>c", "ac", "b"},
		{"a<THINK>b</Think>c<thinking>d", "ac", "b\nd"},
		{"a</think>b", "b", "a"},
		{"a<think>b</reasoning>c</think>d", "ad", "b</reasoning>c"},
		{"<think >b</think >c", "c", "b"},
		{"<|thinking|>b<|/thinking|>c", "c", "b"},
		{"<unused94>thought\nb<unused95>c", "c", "thought\nb"},
		{"<antthinking>b</antthinking>c", "c", "b"},
		{"<ant_thinking>b</ant_thinking>c", "c", "b"},
		{"<inner_thoughts>b</inner_thoughts>c", "c", "b"},
		{"<|channel|>analysis<|message|>a<|end|>b", "b", "<|message|>a"},
	}
	for _, tt := range tests {
		visible, hidden := Split(tt.text)
		if visible != tt.visible || hidden != tt.hidden {
			t.Errorf("%q: %q and %q, want %q and %q", tt.text, visible, hidden, tt.visible, tt.hidden)
		}
		if strings.Contains(tt.text, "a</think>") {
			continue // a stream cannot know
		}
		for size := range 5 {
			var out, in string
			var h Thinking
			see, hide := func(s string) { out += s }, func(s string) { in = strings.TrimPrefix(in+"\n"+s, "\n") }
			for s := tt.text; s != ""; s = s[min(size+1, len(s)):] {
				h.Feed(s[:min(size+1, len(s))], see, hide)
			}
			if h.End(see, hide); out != visible || in != hidden {
				t.Errorf("%q in pieces of %d: %q and %q", tt.text, size+1, out, in)
			}
		}
	}
}

func TestMD11_Name(t *testing.T) {
	two := []tenon.Tool{{Name: "Ping"}, {Name: "ping"}, {Name: "__init"}}
	for name, want := range map[string]string{"ping": "ping", "PING": "", "`ping`": "ping", "__init": "__init", "INIT": "",
		"**Ping**.": "Ping", "pong": "", "": "", "functions.ping": "ping"} {
		if got, _, _ := Name(name, two); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	var e *NoCallError
	if _, _, err := Find(`{"name": "gett", "arguments": {}}`, tools); !errors.As(err, &e) || e.Nearest != "get" {
		t.Errorf("%v", err)
	}
}

// TestMD11_SplitData checks that tags in the strings of a JSON object are not thinking, and that an object that cannot
// be read never becomes one that can.
func TestMD11_SplitData(t *testing.T) {
	tests := []struct{ text, visible string }{
		{`x {"a": "b<think>c", "d": "e</think>f"} y`, `x {"a": "b<think>c", "d": "e</think>f"} y`},
		{`<think>h</think>{"a": "<think>c</think>"}<think>i</think>`, `{"a": "<think>c</think>"}`},
		{`{"a": "b</think>c"}`, `{"a": "b</think>c"}`},
		{`{"a": "b<think>c"d", "e": "f</think>g"}`, `{"a": "b`},
		{`{"a": "b"} <think>c</think>d`, `{"a": "b"} d`},
		{"{ <think>c</think>d", "{ d"},
		{strings.Repeat("{„", 5000) + "<think>c</think>d", strings.Repeat("{„", 5000)},
	}
	for _, tt := range tests {
		if visible, _ := Split(tt.text); visible != tt.visible {
			t.Errorf("%.80q: %.80q, want %.80q", tt.text, visible, tt.visible)
		}
	}
}

// written reports whether all strings and numbers of a value occur in a text, ignoring their escapes.
func written(text string, v any) bool {
	switch v := v.(type) {
	case string:
		for word := range strings.FieldsFuncSeq(v, func(r rune) bool { return r < ' ' || strings.ContainsRune(`\"'/`, r) }) {
			if !strings.Contains(text, word) {
				return strings.Contains(text, `\`) // an escape of a character
			}
		}
	case json.Number:
		return strings.Contains(text, v.String())
	case []any:
		for _, e := range v {
			if !written(text, e) {
				return false
			}
		}
	case map[string]any:
		for k, e := range v {
			if !written(text, k) || !written(text, e) {
				return false
			}
		}
	}
	return true
}

// FuzzFind checks that no text causes a panic, and that a found call has a known tool and only values that are in the
// text.
func FuzzFind(f *testing.F) {
	for _, s := range []string{`{"name": "get", "arguments": {"a": 1}}`, `<tool_call>{"name":"get","arguments":"{'s': None}"}`,
		"```json\n{\"action\": \"get\", \"action_input\": {\"s\": “x”}}\n```", `get(a=1, s="x")`, `get({"a": [1, 2`,
		"<function=get>\n<parameter=s>\nx\n</parameter>\n</function>", `[TOOL_CALLS]get[ARGS]{"a": 1}`, `<think>x</think>ping()`,
		"<｜tool▁call▁begin｜>get<｜tool▁sep｜>{\"a\": 1}", `functools[{"name": "get", "arguments": {}}]`, `{"function": {`,
		`<invoke name="get"><parameter name="a">5</parameter></invoke>`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		visible, _ := Split(text)
		c, _, err := Find(visible, tools)
		if err != nil || c.IsFinal {
			return
		}
		d := json.NewDecoder(strings.NewReader(string(c.Args)))
		d.UseNumber()
		var v map[string]any
		if _, _, ok := Name(c.Name, tools); !ok || d.Decode(&v) != nil {
			t.Fatalf("%q is a call of %q with %s", text, c.Name, c.Args)
		}
		if !written(text, v) {
			t.Errorf("%q is a call with other arguments: %s", text, c.Args)
		}
	})
}
