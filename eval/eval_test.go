package eval_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/eval"
	"github.com/tenonhq/tenon/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExample checks that the example of the repository passes.
func TestExample(t *testing.T) {
	s, err := eval.Load("../examples/eval/weather.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := eval.Run(t.Context(), s, eval.Options{Repeat: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cases {
		for _, a := range c.Attempts {
			if !a.Passed {
				t.Errorf("%s: %s", c.Name, a.Reason())
			}
		}
	}
	if r.Passed != 4 || r.Failed != 0 || len(r.Cases[0].Attempts) != 2 {
		t.Errorf("%d passed, %d failed", r.Passed, r.Failed)
	}
}

// suite writes a script and a file of cases and loads the file.
func suite(t *testing.T, script, file string) *eval.Suite {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := eval.Parse("e.yaml", []byte("model: script:s.yaml\n"+file), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const twoCalls = `
steps:
  - calls: [{name: look, arguments: {q: one, n: 9007199254740993}}, {name: look, arguments: {q: two, deep: [{a: 1.0}, b]}}]
  - text: '{"found": 2, "names": ["x"]}'
`

const lookMock = `
mocks: [{tool: look, description: looks, text: fine}]
cases: [{question: go, expect: %s}]
`

// TestExpectations checks every kind of expectation, met and not met, and its message.
func TestExpectations(t *testing.T) {
	for name, c := range map[string]struct{ expect, want string }{
		"exact":              {"{calls: [{tool: look, arguments: {q: one}}, {tool: look}]}", ""},
		"exact order":        {"{calls: [{tool: look, arguments: {q: two}}, {tool: look}]}", `call 1: arguments of look: at q: want "two", got "one"`},
		"too few":            {"{calls: [{tool: look}, {tool: look}, {tool: other}]}", "call 3: want other, got none"},
		"too many":           {"{calls: [{tool: look}]}", `call 2 is not expected: look{"q":"two"`},
		"none":               {"{calls: []}", "call 1 is not expected"},
		"set":                {"{order: set, calls: [{tool: look, arguments: {q: two}}, {tool: look, arguments: {q: one}}]}", ""},
		"set, one missing":   {"{order: set, calls: [{tool: look, arguments: {q: two}}, {tool: look, arguments: {q: two}}]}", `call 2: want look{"q":"two"}: arguments of look: at q`},
		"any":                {"{order: any, calls: [{tool: look, arguments: {q: two}}]}", ""},
		"any, other tool":    {"{order: any, calls: [{tool: peek}]}", "call 1: want peek, but the calls were: look, look"},
		"ordered":            {"{order: ordered, calls: [{tool: look, arguments: {q: two}}]}", ""},
		"ordered, wrong":     {"{order: ordered, calls: [{tool: look, arguments: {q: two}}, {tool: look, arguments: {q: one}}]}", "call 2: want look"},
		"large number":       {"{order: any, calls: [{tool: look, arguments: {n: 9007199254740993}}]}", ""},
		"near number":        {"{order: any, calls: [{tool: look, arguments: {n: 9007199254740992}}]}", "want 9007199254740992, got 9007199254740993"},
		"same number":        {"{order: any, calls: [{tool: look, arguments: {deep: [{a: 1}, {$any: true}]}}]}", ""},
		"regex":              {"{order: any, calls: [{tool: look, arguments: {q: {$regex: '^tw'}}}]}", ""},
		"contains":           {"{order: any, calls: [{tool: look, arguments: {q: {$contains: WO}}}]}", ""},
		"regex of a number":  {"{order: any, calls: [{tool: look, arguments: {n: {$regex: '^9'}}}]}", "want a text that matches /^9/"},
		"exact arguments":    {"{order: any, calls: [{tool: look, arguments: {q: one}, exact: true}]}", "want no member 'n'"},
		"server":             {"{order: any, calls: [{tool: look, server: mock, outcome: result}]}", ""},
		"other server":       {"{order: any, calls: [{tool: look, server: t}]}", "call 1: want t.look"},
		"outcome":            {"{order: any, calls: [{tool: look, outcome: denied}]}", "want the outcome denied, got result"},
		"equals":             {`{answer: {equals: '{"found": 2, "names": ["x"]} '}}`, ""},
		"not equal":          {"{answer: {equals: no}}", `answer: want "no", got`},
		"contained":          {"{answer: {contains: [FOUND, names], not_contains: [lost]}}", ""},
		"not contained":      {"{answer: {contains: [lost], not_contains: [found]}}", `answer: want a text that contains "lost"`},
		"regex of answer":    {`{answer: {regex: '"found":\s*\d'}}`, ""},
		"regex does not fit": {"{answer: {regex: '^x$'}}", "answer: want a text that matches /^x$/"},
		"schema":             {"{answer: {schema: {type: object, required: [found]}}}", ""},
		"schema not met":     {"{answer: {schema: {type: object, required: [lost]}}}", "answer: it does not fit the schema"},
		"json":               {"{answer: {json: {found: 2}}}", ""},
		"json not met":       {"{answer: {json: {names: [y]}}}", `answer: at names[0]: want "y", got "x"`},
		"turns":              {"{max_turns: 1}", "turns: 2, at most 1"},
		"stop":               {"{stop_reason: limit_turns}", "stop reason: want limit_turns, got stop"},
		"cost":               {"{max_cost: 1}", "the price of the model is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			s := suite(t, twoCalls, fmt.Sprintf(lookMock, c.expect))
			r, err := eval.Run(t.Context(), s, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a := r.Cases[0].Attempts[0]
			if a.Passed != (c.want == "") || !strings.Contains(a.Reason(), c.want) {
				t.Errorf("passed %t: %s; want %q", a.Passed, a.Reason(), c.want)
			}
		})
	}
}

// TestFileErrors checks that every mistake has a position, and that all are reported at once.
func TestFileErrors(t *testing.T) {
	_, err := eval.Parse("e.yaml", []byte(`repeat: 0
cases:
  - question: ""
    expect:
      answer: {regex: "(", schema: {type: 7}}
  - name: a
    question: q
    expext: {}
    mocks: [{tool: t}, {text: x}, {tool: t, text: a, error: b}]
  - name: A
    question: q
    expect: {order: any, calls: [{arguments: {a: {$regex: "("}}}, {tool: t, arguments: {$what: 1}}]}
`), t.TempDir())
	var all config.Errors
	if !errors.As(err, &all) || tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Fatalf("%v", err)
	}
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Col, e.Path))
	}
	want := []string{"1:9 repeat", "8:5 cases[1].expext"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	_, err = eval.Parse("e.yaml", []byte(`
cases:
  - question: ""
    expect:
      answer: {regex: "(", schema: {type: 7}}
  - name: a
    question: q
    mocks: [{tool: t}, {text: x}, {tool: t, text: a, error: b}]
  - name: A
    question: q
    expect: {order: any, calls: [{arguments: {a: {$regex: "("}}}, {tool: t, arguments: {$what: 1}}]}
`), t.TempDir())
	got = nil
	if !errors.As(err, &all) {
		t.Fatalf("%v", err)
	}
	for _, e := range all {
		got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Col, e.Path))
	}
	want = []string{"3:15 cases[0].question", "5:23 cases[0].expect.answer.regex", "5:36 cases[0].expect.answer.schema",
		"8:13 cases[1].mocks[0]", "8:24 cases[1].mocks[1]", "8:35 cases[1].mocks[2]",
		"9:11 cases[2].name", "11:34 cases[2].expect.calls[0]", "11:46 cases[2].expect.calls[0].arguments", "11:88 cases[2].expect.calls[1].arguments"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s\n%v", d, err)
	}
	if _, err := eval.Load(filepath.Join(t.TempDir(), "none.yaml")); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("%v", err)
	}
	if _, err := eval.Parse("e.yaml", nil, ""); err == nil || !strings.Contains(err.Error(), "there are no cases") {
		t.Errorf("%v", err)
	}
}

// bank is a toolset with a write operation.
type bank struct{ calls atomic.Int32 }

func (*bank) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Server: "bank", Remote: "pay", Input: []byte(`{"type":"object"}`)}}, nil
}

func (b *bank) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	b.calls.Add(1)
	return &tenon.Result{Content: []tenon.Content{tenon.Text("paid")}}, nil
}

// TestRealTools checks calls that need approval: they are made only if allowed or mocked. With
// mocked tools, calls without a matching mock are not made. Each attempt has its own cassette.
func TestRealTools(t *testing.T) {
	const script = "steps:\n  - calls: [{name: pay, arguments: {sum: 5}}]\n  - text: done\n"
	const one = "repeat: 2\ncases: [{name: My case, question: go, expect: {answer: {equals: done}}}]\n"
	b := &bank{}
	run := func(file string, o eval.Options) eval.CaseResult {
		t.Helper()
		b.calls.Store(0)
		o.Host = host.Config{Toolsets: map[string]tenon.Toolset{"bank": b}}
		r, err := eval.Run(t.Context(), suite(t, script, file), o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Cases[0]
	}
	if c := run(one, eval.Options{}); c.Passed || !strings.Contains(c.Attempts[0].Reason(), "pay({\"sum\":5}) needs approval") || b.calls.Load() != 0 {
		t.Errorf("%+v", c)
	}
	dir := t.TempDir()
	if c := run(one, eval.Options{Yes: true, Record: dir}); !c.Passed || b.calls.Load() != 2 {
		t.Errorf("%+v", c)
	}
	for _, f := range []string{"my-case/mcp/bank/0002.json", "my-case-2/mcp/bank/0002.json"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
	if c := run(one, eval.Options{Yes: true, Replay: dir, Repeat: 3}); !c.Passed || b.calls.Load() != 0 || len(c.Attempts) != 3 {
		t.Errorf("%+v", c)
	}
	if c := run(one, eval.Options{Yes: true, Replay: t.TempDir()}); c.Passed || !strings.Contains(c.Attempts[0].Error, "holds no recordings") {
		t.Errorf("%+v", c)
	}
	if c := run(one+"mocks: [{tool: pay, server: bank, structured: {ok: true}}]\n", eval.Options{}); !c.Passed || b.calls.Load() != 0 {
		t.Errorf("%+v", c)
	}
	if c := run("tools: mocked\n"+one+"mocks: [{tool: pay, arguments: {sum: 6}, text: x}]\n", eval.Options{}); c.Passed || b.calls.Load() != 0 ||
		c.Attempts[0].Reason() != `no mock matches the call bank.pay({"sum":5})` {
		t.Errorf("%+v", c)
	}
	keep := t.TempDir()
	c := run("pass: 0.5\n"+one+"mocks: [{tool: pay, error: broke, delay: 1ms, times: 1}]\n", eval.Options{Keep: keep})
	if !c.Passed || c.Attempts[0].Calls[0].Error != "broke" {
		t.Errorf("%+v", c)
	}
	if _, err := os.Stat(filepath.Join(keep, "my-case-2", "tenon.db")); err != nil {
		t.Error(err)
	}
}

// TestInterruptedAndTimedOut checks that finished attempts are reported, and that the others have
// an error.
func TestInterruptedAndTimedOut(t *testing.T) {
	s := suite(t, "steps: [{delay: 10s, text: late}]", "timeout: 50ms\ncases: [{question: go}]")
	r, err := eval.Run(t.Context(), s, eval.Options{})
	if err != nil || r.Failed != 1 || r.Cases[0].Attempts[0].Error != "it took longer than 50ms" {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = suite(t, "steps: [{text: soon}]", "concurrency: 1\nrepeat: 5\ncases: [{question: go, expect: {stop_reason: stop}}, {name: b, question: go}]")
	r, err = eval.Run(ctx, s, eval.Options{Each: func(eval.Attempt) { cancel() }})
	if tenon.ErrorCode(err) != tenon.CodeCancelled || r == nil || !r.Cases[0].Attempts[0].Passed || r.Cases[1].Attempts[4].Error != "not started: interrupted" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := eval.Run(t.Context(), s, eval.Options{Cases: []string{"x*"}}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("%v", err)
	}
}

// TestJUnit checks counts, causes, and characters that XML cannot contain.
func TestJUnit(t *testing.T) {
	r := &eval.Result{Suite: "s", Millis: 1500, Cases: []eval.CaseResult{
		{Name: "good", Passed: true, Attempts: []eval.Attempt{{Passed: true, Millis: 5}, {Number: 2, Failures: []string{"flaky"}}}},
		{Name: "bad <&>", Attempts: []eval.Attempt{{Number: 1, Run: "run_1", Failures: []string{"want \x1b[0m & more", "second"}}}},
		{Name: "broken", Attempts: []eval.Attempt{{Error: "no server"}}},
	}}
	var b bytes.Buffer
	if err := r.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
			Error *struct{} `xml:"error"`
			Out   string    `xml:"system-out"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if back.Tests != 3 || back.Failures != 1 || back.Errors != 1 || back.Cases[1].Name != "bad <&>" || back.Cases[1].Failure.Message != "want \uFFFD[0m & more" ||
		back.Cases[2].Error == nil || !strings.Contains(back.Cases[0].Out, "flaky") {
		t.Errorf("%+v\n%s", back, b.String())
	}
}

func FuzzSuite(f *testing.F) {
	example, err := os.ReadFile("../examples/eval/weather.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte("cases: [{question: q, expect: {calls: [{tool: t, arguments: {$any: true}}]}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := eval.Parse("e.yaml", data, ""); err == nil && len(s.Cases) == 0 {
			t.Error("a file without cases is taken")
		}
	})
}
