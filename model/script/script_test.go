package script_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/script"
)

func parse(t *testing.T, text string) *script.Model {
	t.Helper()
	m, err := script.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ask sends the messages and formats the answer and the deltas as one text.
func ask(m tenon.Model, req *tenon.Request) (*tenon.Response, string, error) {
	var deltas strings.Builder
	for d, err := range m.Generate(context.Background(), req) {
		if err != nil {
			return nil, deltas.String(), err
		}
		if d.Response != nil {
			return d.Response, deltas.String(), nil
		}
		fmt.Fprintf(&deltas, "%s(%s)", d.Kind, d.Text)
	}
	return nil, deltas.String(), nil
}

func results(calls []*tenon.ToolCall, text string) *tenon.Message {
	msg := &tenon.Message{Role: tenon.RoleTool}
	for _, c := range calls {
		msg.Parts = append(msg.Parts, tenon.Part{Type: tenon.PartResult, Result: &tenon.ToolResult{
			ID: c.ID, Name: c.Name, Content: []tenon.Content{tenon.Text(text)}}})
	}
	return msg
}

func TestPlaysStepsFromTheConversation(t *testing.T) {
	m := parse(t, `
steps:
  - expect: weather
    thinking: a b
    text: Let me look.
    calls:
      - {name: get_weather, arguments: {location: London, n: 9007199254740993, deep: [1.50, yes, null, "1"]}}
      - {name: broken, raw: '{"half'}
      - {name: plain, id: tool_abc123}
    usage: {input_tokens: 3, output_tokens: 4}
  - expect: [15°C]
    text: It is cloudy.
`)
	msgs := []*tenon.Message{tenon.UserMessage("weather?")}
	resp, deltas, err := ask(m, &tenon.Request{Messages: msgs})
	if err != nil {
		t.Fatal(err)
	}
	want := `thinking(a )thinking(b)text(Let )text(me )text(look.)call(get_weather)call(broken)call(plain)`
	if deltas != want {
		t.Errorf("deltas %s", deltas)
	}
	calls := resp.Message.Calls()
	if got := string(calls[0].Arguments); got != `{"location":"London","n":9007199254740993,"deep":[1.50,"yes",null,"1"]}` {
		t.Errorf("arguments %s", got)
	}
	if calls[1].Malformed != `{"half` || len(calls[1].Arguments) != 0 || calls[2].ID != "tool_abc123" || string(calls[2].Arguments) != "{}" {
		t.Errorf("calls %+v %+v", calls[1], calls[2])
	}
	if resp.Stop != tenon.StopToolUse || resp.Usage.Output != 4 {
		t.Errorf("stop %s, usage %+v", resp.Stop, resp.Usage)
	}
	if err := m.Unconsumed(append(msgs, resp.Message)); err == nil || !strings.Contains(err.Error(), "step 2 (line 11)") {
		t.Errorf("unconsumed: %v", err)
	}

	msgs = append(msgs, resp.Message, results(calls, "15°C, Cloudy"))
	resp, _, err = ask(m, &tenon.Request{Messages: msgs})
	if err != nil || resp.Message.Text() != "It is cloudy." || resp.Stop != tenon.StopEnd {
		t.Fatalf("%+v, %v", resp, err)
	}
	msgs = append(msgs, resp.Message)
	if err := m.Unconsumed(msgs); err != nil {
		t.Error(err)
	}
	if _, _, err := ask(m, &tenon.Request{Messages: append(msgs, results(nil, ""))}); err == nil ||
		!strings.Contains(err.Error(), "script t.yaml: no step 3") {
		t.Errorf("past the end: %v", err)
	}
	// A new question restarts the script.
	resp, _, err = ask(m, &tenon.Request{Messages: append(msgs, tenon.UserMessage("weather again?"))})
	if err != nil || len(resp.Message.Calls()) != 3 {
		t.Errorf("second run: %+v, %v", resp, err)
	}
}

// TestJSONOfPython checks that a script in JSON may write characters as escaped pairs, as Python's json.dumps does.
func TestJSONOfPython(t *testing.T) {
	m := parse(t, `{"steps": [{"text": "a \ud83d\ude00 b \\ud83d c"}]}`)
	resp, _, err := ask(m, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("hi")}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := resp.Message.Text(), `a 😀 b \ud83d c`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMessagesWithoutMarksAreCounted(t *testing.T) {
	m := parse(t, "steps: [{text: one}, {text: two}, {text: three}]")
	assistant := &tenon.Message{Role: tenon.RoleAssistant}
	for n, want := range []string{"one", "two", "three"} {
		msgs := []*tenon.Message{assistant, tenon.UserMessage("x")}
		for range n {
			msgs = append(msgs, assistant, results(nil, ""))
		}
		resp, _, err := ask(m, &tenon.Request{Messages: msgs})
		if err != nil || resp.Message.Text() != want {
			t.Errorf("after %d answers: %v, %v", n, resp, err)
		}
	}
}

func TestEndlessScript(t *testing.T) {
	m := parse(t, "steps: [{text: first, repeat: 2}, {calls: [{name: f}], repeat: forever}]")
	msgs := []*tenon.Message{tenon.UserMessage("go")}
	for i := range 50 {
		resp, _, err := ask(m, &tenon.Request{Messages: msgs})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(resp.Message.Calls()) == 1; got != (i >= 2) {
			t.Fatalf("turn %d: %+v", i, resp.Message)
		}
		if i == 0 && m.Unconsumed(append(msgs, resp.Message)) == nil {
			t.Error("the second repetition was not used")
		}
		msgs = append(msgs, resp.Message, results(resp.Message.Calls(), "ok"))
	}
	if err := m.Unconsumed(msgs); err != nil {
		t.Error(err)
	}
}

// TestForeverSelectsAgain checks that a scripted conversation that repeats forever ends if a later question matches
// another conversation.
func TestForeverSelectsAgain(t *testing.T) {
	m := parse(t, `
conversations:
  - {match: alpha, steps: [{text: this is alpha}]}
  - {match: loop, steps: [{calls: [{name: f}], repeat: forever}]}
  - {steps: [{text: first}, {text: other, repeat: forever}]}
`)
	var msgs []*tenon.Message
	for i, turn := range []struct{ question, want string }{
		{"hi", "first"}, {"hi", "other"}, {"hi", "other"}, {"alpha", "this is alpha"}, {"hi", "first"}, {"hi", "other"},
		{"loop", ""}, {"alpha", ""}, // a message to a run that is calling tools
	} {
		msgs = append(msgs, tenon.UserMessage(turn.question))
		resp, _, err := ask(m, &tenon.Request{Messages: msgs})
		if err != nil || resp.Message.Text() != turn.want || (len(resp.Message.Calls()) == 1) != (turn.want == "") {
			t.Fatalf("turn %d: %+v, %v", i, resp, err)
		}
		msgs = append(msgs, resp.Message)
		if calls := resp.Message.Calls(); len(calls) > 0 {
			msgs = append(msgs, results(calls, "ok"))
		}
	}
}

func TestStepErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want, code string }{
		"error":      {"steps: [{text: part, error: {code: rate_limited, status: 429, message: slow down}}]", "script t.yaml: HTTP 429: slow down", "rate_limited"},
		"expect":     {"steps: [{expect: Paris}]", `t.yaml:1: step 1 expects "Paris" in the last message or the system prompt; the last message is "hello"`, "model_error"},
		"tools":      {"steps: [{expect_tools: [add]}]", "step 1 expects the tool add; available tools: sub", "model_error"},
		"no match":   {"conversations: [{match: x1, steps: [{text: a}]}]", `no conversation matches "hello"`, "model_error"},
		"bare error": {"steps: [{error: {}}]", "script t.yaml: model_error", "model_error"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ask(parse(t, c.text), &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("hello")}, Tools: []tenon.Tool{{Name: "sub"}}})
			if err == nil || !strings.Contains(err.Error(), c.want) || string(tenon.ErrorCode(err)) != c.code {
				t.Errorf("%v (%s)", err, tenon.ErrorCode(err))
			}
		})
	}
}

func TestFileErrorsHaveLines(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":   {"steps:\n  - text: a\n  - txet: b\n", "line 3"},
		"no steps":      {"{}", "no steps"},
		"empty file":    {"", "no steps"},
		"not yaml":      {"steps: [", "line"},
		"bad repeat":    {"steps:\n  - repeat: never\n", "line 2"},
		"bad stop":      {"steps:\n  - stop: maybe\n", "step 1 (line 2): unknown stop reason 'maybe'"},
		"call no name":  {"steps:\n  - calls: [{arguments: {}}]\n", "call 1 has no name"},
		"both":          {"steps: [{text: a}]\nconversations: [{steps: [{text: b}]}]", "both"},
		"bad type":      {"steps:\n  - delay: soon\n", "line 2"},
		"unknown top":   {"steps: [{text: a}]\nstep: 1\n", "line 2"},
		"duplicate key": {"steps:\n  - text: a\n    text: b\n", "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := script.Parse("t.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || tenon.ErrorCode(err) != tenon.CodeConfig {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := script.Load(filepath.Join(t.TempDir(), "no.yaml")); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("%v", err)
	}
}

func TestNewLoadsThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weather.yaml")
	if err := os.WriteFile(path, []byte("steps: [{text: hi}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := script.New(model.Config{Provider: "script", Path: path})
	if err != nil || m.Name() != "script/weather.yaml" {
		t.Fatalf("%v, %v", m, err)
	}
	if _, err := script.New(model.Config{Provider: "script"}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("%v", err)
	}
}

func TestDelaysPartialAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, "steps: [{delay: 1h, partial: half an, text: grüße, chunk: 3, chunk_delay: 1m}]")
		req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("x")}}
		start := time.Now()
		_, deltas, err := ask(m, req)
		want := "text(hal)text(f a)text(n)reset(the connection broke (scripted))text(grü)text(ße)"
		if err != nil || deltas != want {
			t.Errorf("%s, %v", deltas, err)
		}
		if d := time.Since(start); d != time.Hour+3*time.Minute {
			t.Errorf("took %s", d)
		}
		for name, want := range map[string]tenon.Code{"deadline": tenon.CodeTimeout, "cancel": tenon.CodeCancelled} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if name == "cancel" {
				cancel()
			}
			for _, err := range m.Generate(ctx, req) {
				if tenon.ErrorCode(err) != want {
					t.Errorf("%s: %v", name, err)
				}
			}
			cancel()
		}
	})
}

func TestDemo(t *testing.T) {
	m := script.Demo()
	msgs := []*tenon.Message{tenon.UserMessage("What is the weather in London?")}
	offer := []tenon.Tool{{Name: "get_weather"}, {Name: "counter"}}
	resp, _, err := ask(m, &tenon.Request{Messages: msgs, Tools: offer})
	if err != nil {
		t.Fatal(err)
	}
	want := &tenon.ToolCall{ID: "call_1_1", Name: "get_weather", Arguments: []byte(`{"location":"London"}`)}
	if d := cmp.Diff([]*tenon.ToolCall{want}, resp.Message.Calls()); d != "" {
		t.Fatal(d)
	}
	msgs = append(msgs, resp.Message, results(resp.Message.Calls(), "15°C, Cloudy"))
	resp, _, err = ask(m, &tenon.Request{Messages: msgs})
	if err != nil || resp.Message.Text() != "The current weather in London is 15°C and cloudy." {
		t.Fatalf("%v, %v", resp, err)
	}
	msgs = append(msgs, resp.Message)
	if err := m.Unconsumed(msgs); err != nil {
		t.Error(err)
	}
	for question, tool := range map[string]string{"And in Paris?": "get_weather", "Count one up.": "counter"} {
		resp, _, err = ask(m, &tenon.Request{Messages: append(msgs, tenon.UserMessage(question)), Tools: offer})
		if err != nil || len(resp.Message.Calls()) != 1 || resp.Message.Calls()[0].Name != tool {
			t.Errorf("%s: %v, %v", question, resp, err)
		}
		resp, _, err = ask(m, &tenon.Request{Messages: append(msgs, tenon.UserMessage(question))})
		if err != nil || len(resp.Message.Calls()) != 0 || !strings.Contains(resp.Message.Text(), "demo server, which did not start") {
			t.Errorf("%s, without tools: %v, %v", question, resp, err)
		}
	}
	resp, _, err = ask(m, &tenon.Request{Messages: append(msgs, tenon.UserMessage("Who are you?")), Tools: offer})
	if err != nil || !strings.Contains(resp.Message.Text(), "tenon models login") || !strings.Contains(resp.Message.Text(), "Ollama") {
		t.Errorf("%v, %v", resp, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("steps: [{text: a, calls: [{name: f, arguments: {a: [1, null]}}]}]"))
	f.Add([]byte("conversations: [{match: [a, b], steps: [{repeat: forever}]}]"))
	f.Add([]byte("steps: [{calls: [{name: f, arguments: {? [a] : b, <<: {c: d}}}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := script.Parse("f", data)
		if err != nil {
			return
		}
		_, _, _ = ask(noDelay{m}, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("a")}})
	})
}

// noDelay calls a scripted model with a cancelled context, so that a fuzzed delay does not block the fuzzer.
type noDelay struct{ *script.Model }

func (m noDelay) Generate(_ context.Context, req *tenon.Request) iter.Seq2[tenon.Delta, error] {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return m.Model.Generate(ctx, req)
}
