package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(waiting{m}) }

// waiting runs more parallel tests at the same time than there are cores, because only tests that mostly wait are
// parallel.
type waiting struct{ m *testing.M }

func (w waiting) Run() int {
	flag.Parse()
	cores := strconv.Itoa(runtime.GOMAXPROCS(0))
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == cores {
		_ = f.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0))) // a number is always valid
	}
	return w.m.Run()
}

// shop is a toolset written in Go. It has read-only tools, tools that change something, and tools that fail.
type shop struct {
	sold atomic.Int32
	gate chan struct{} // if not nil, sell waits until it is closed
	mu   sync.Mutex
	keys []string
}

func (s *shop) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	object := json.RawMessage(`{"type":"object"}`)
	return []tenon.Tool{
		{Remote: "price", Description: "what a thing costs", Annotations: tenon.Annotations{ReadOnly: &yes},
			Input: json.RawMessage(`{"type":"object","properties":{"thing":{"type":"string"}},"required":["thing"]}`)},
		{Remote: "sell", Input: object},
		{Remote: "fail", Input: object, Annotations: tenon.Annotations{ReadOnly: &yes}},
		{Remote: "gone", Input: object, Annotations: tenon.Annotations{ReadOnly: &yes}},
	}, nil
}

func (s *shop) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	s.mu.Lock()
	s.keys = append(s.keys, c.Key)
	s.mu.Unlock()
	switch c.Tool {
	case "sell":
		if s.gate != nil {
			select {
			case <-s.gate:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		s.sold.Add(1)
		return &tenon.Result{Content: []tenon.Content{tenon.Text("sold")}}, nil
	case "fail":
		return tenon.ErrorResult("boom"), nil
	case "gone":
		return nil, tenon.Errorf(tenon.CodeUnreachable, "the shop is closed")
	}
	return &tenon.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"3 EUR","x-vendor":1}],"structuredContent":{"cents":9007199254740993}}`),
		Content: []tenon.Content{tenon.Text("3 EUR")}}, nil
}

// open opens a host with a home folder, a shop and a model that plays the steps.
func open(t *testing.T, home, steps string, s *shop) *host.Host {
	t.Helper()
	file := filepath.Join(home, "steps.yaml")
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Home: home, Model: "script:" + file,
		Toolsets:  map[string]tenon.Toolset{"shop": s},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// ask starts a question and follows the run until it ends or waits. It returns the run's report and events.
func ask(t *testing.T, h *host.Host, q host.Question) (view.Report, []tenon.Event) {
	t.Helper()
	run, err := h.Start(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return follow(t, h, run.ID)
}

func follow(t *testing.T, h *host.Host, run string) (view.Report, []tenon.Event) {
	t.Helper()
	var events []tenon.Event
	for e, err := range h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	r, err := h.Runs().Open(run).Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r, events
}

func TestRun(t *testing.T) {
	tests := []struct {
		name   string
		steps  string
		state  tenon.RunState
		answer string
		calls  []string // name, outcome, result or error
	}{
		{"RA-27 the model may use no tool", "steps: [{text: hello}]", tenon.RunCompleted, "hello", nil},
		{"one call", "steps: [{calls: [{name: price, arguments: {thing: tea}}]}, {expect: 3 EUR, text: three}]", tenon.RunCompleted, "three",
			[]string{"price result 3 EUR"}},
		{"KN-25 a tool's failure goes back to the model", "steps: [{calls: [{name: fail}]}, {expect: 'Error: boom', text: sorry}]", tenon.RunCompleted, "sorry",
			[]string{"fail result boom"}},
		{"KN-31 an unknown tool is answered", "steps: [{calls: [{name: nope}]}, {expect: 'not found among available tools: [fail, gone, price, sell]', text: sorry}]", tenon.RunCompleted, "sorry",
			[]string{"nope invalid Tool 'nope' not found among available tools: [fail, gone, price, sell]"}},
		{"arguments that do not fit", "steps: [{calls: [{name: price}]}, {expect: do not fit its schema, text: sorry}]", tenon.RunCompleted, "sorry", []string{"price invalid *"}},
		{"a server that is gone", "steps: [{calls: [{name: gone}]}, {expect: the shop is closed, text: sorry}]", tenon.RunCompleted, "sorry", []string{"gone failed the shop is closed; this was attempt 3"}},
		{"a step too few fails the run", "steps: [{calls: [{name: price, arguments: {thing: tea}}]}]", tenon.RunFailed, "", []string{"price result 3 EUR"}},
		{"a step too many fails the run", "steps: [{text: one}, {text: two}]", tenon.RunFailed, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t, t.TempDir(), tt.steps, &shop{})
			r, events := ask(t, h, host.Question{Text: "q"})
			if r.State != tt.state || r.Answer != tt.answer {
				t.Errorf("ended %s %q (%v), want %s %q", r.State, r.Answer, r.Error, tt.state, tt.answer)
			}
			var calls []string
			for i, c := range r.ToolCalls {
				text := c.Error
				if c.Success {
					text = c.Result.Text()
				}
				if i < len(tt.calls) && strings.HasSuffix(tt.calls[i], "*") {
					text = "*"
				}
				calls = append(calls, c.Name+" "+c.Outcome+" "+text)
			}
			if diff := cmp.Diff(tt.calls, calls); diff != "" {
				t.Error(diff)
			}
			seq := uint64(0)
			for _, e := range events {
				if e.Seq == 0 {
					continue
				}
				if seq++; e.Seq != seq {
					t.Fatalf("event %d after %d", e.Seq, seq-1)
				}
			}
		})
	}
}

func TestResultsSurviveByteForByte(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{text: x}]", &shop{})
	r, run, err := host.CallTool(t.Context(), h, "price", json.RawMessage(`{"thing":"tea"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(r)
	want := `{"content":[{"type":"text","text":"3 EUR","x-vendor":1}],"structuredContent":{"cents":9007199254740993}}`
	if string(b) != want {
		t.Errorf("got %s", b)
	}
	events, err := h.Runs().Open(run).Journal(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := view.Of(events).Calls()[0]
	if c.Verdict != tenon.Allow || !c.Success {
		t.Errorf("record %+v", c)
	}
}

func TestCallToolErrors(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{text: x}]", &shop{})
	tests := []struct {
		tool, args string
		code       tenon.Code
	}{
		{"nope", "{}", tenon.CodeNotFound},
		{"price", "{}", tenon.CodeInvalid},
		{"gone", "{}", tenon.CodeUnreachable},
	}
	for _, tt := range tests {
		if _, _, err := host.CallTool(t.Context(), h, tt.tool, json.RawMessage(tt.args), nil); tenon.ErrorCode(err) != tt.code {
			t.Errorf("%s: error %v, want %s", tt.tool, err, tt.code)
		}
	}
	// A call that a person starts needs no approval, because the call itself is the consent.
	r, _, err := host.CallTool(t.Context(), h, "sell", json.RawMessage("{}"), nil)
	if err != nil || r.Text() != "sold" {
		t.Errorf("sell: %v %v", r, err)
	}
}

const sellSteps = "steps: [{calls: [{name: sell, arguments: {n: 1}}]}, {text: done}]"

func TestApproval(t *testing.T) {
	tests := []struct {
		name   string
		ruling agent.Ruling
		sold   int32
		told   string
	}{
		{"allow", agent.Ruling{Verdict: tenon.Allow, By: "ann"}, 1, ""},
		{"deny", agent.Ruling{Verdict: tenon.Deny, By: "ann", Reason: "no"}, 0, "the call was denied by ann: no"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home, s := t.TempDir(), &shop{}
			h := open(t, home, sellSteps, s)
			r, _ := ask(t, h, host.Question{Text: "q"})
			if r.State != tenon.RunInputRequired || s.sold.Load() != 0 {
				t.Fatalf("state %s, sold %d", r.State, s.sold.Load())
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			// Another host decides and continues the run.
			decider := open(t, home, sellSteps, s)
			pending, err := decider.Approvals().List(t.Context(), "")
			if err != nil || len(pending) != 1 || pending[0].Remote != "sell" || string(pending[0].Arguments) != `{"n":1}` {
				t.Fatalf("pending %+v, error %v", pending, err)
			}
			if _, _, err := decider.Approvals().Decide(t.Context(), pending[0].Run, pending[0].Step, tt.ruling); err != nil {
				t.Fatal(err)
			}
			// The first decision wins. A second decision gets an error.
			e, _, err := decider.Approvals().Decide(t.Context(), pending[0].Run, pending[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "bob"})
			var won agent.Ruling
			if err != nil || json.Unmarshal(e.Data, &won) != nil || won.By != "ann" {
				t.Errorf("the second decision was told %s, error %v", e.Data, err)
			}
			if err := decider.Runs().Resume(t.Context(), r.Run); err != nil {
				t.Fatal(err)
			}
			r, _ = follow(t, decider, r.Run)
			c := r.ToolCalls[0]
			if r.State != tenon.RunCompleted || r.Answer != "done" || s.sold.Load() != tt.sold || c.By != "ann" || c.Error != tt.told {
				t.Errorf("ended %s %q, sold %d, call %+v", r.State, r.Answer, s.sold.Load(), c)
			}
		})
	}
}

func TestEditedArgumentsAreChecked(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{calls: [{name: sell}]}, {text: done}]", &shop{})
	r, _ := ask(t, h, host.Question{Text: "q"})
	_, _, err := h.Approvals().Decide(t.Context(), r.Run, "1.0", agent.Ruling{Verdict: tenon.Allow, Arguments: json.RawMessage(`[1]`)})
	if tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("error %v", err)
	}
}

func TestGrant(t *testing.T) {
	s := &shop{}
	h := open(t, t.TempDir(), sellSteps, s)
	r, _ := ask(t, h, host.Question{Text: "q", Grant: "--yes"})
	if r.State != tenon.RunCompleted || s.sold.Load() != 1 || r.ToolCalls[0].By != "--yes" {
		t.Errorf("ended %s, sold %d, by %s", r.State, s.sold.Load(), r.ToolCalls[0].By)
	}
}

func TestSessionGoesOn(t *testing.T) {
	home := t.TempDir()
	h := open(t, home, "steps: [{text: one}]", &shop{})
	first, _ := ask(t, h, host.Question{Text: "first"})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, home, "steps: [{text: two}]", &shop{})
	second, _ := ask(t, h, host.Question{Text: "second", Session: "-1"})
	if second.Session != first.Session || second.Answer != "two" {
		t.Fatalf("session %s after %s, answer %q", second.Session, first.Session, second.Answer)
	}
	msgs, err := h.Sessions().Transcripts().Context(t.Context(), first.Session, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range msgs {
		got = append(got, string(m.Role)+" "+m.Text())
	}
	if diff := cmp.Diff([]string{"user first", "assistant one", "user second", "assistant two"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParallel(t *testing.T) {
	s := &shop{gate: make(chan struct{})}
	h := open(t, t.TempDir(), "steps: [{calls: [{name: sell, arguments: {n: 1}}, {name: sell, arguments: {n: 2}}, {name: sell, arguments: {n: 3}}]}, {text: done}]", s)
	run, err := h.Start(t.Context(), host.Question{Text: "q", Grant: "--yes"})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == tenon.EventStarted && e.Step == "1.2" {
			go func() { // this only returns if all three calls run at the same time
				for range 3 {
					s.gate <- struct{}{}
				}
			}()
		}
	}
	if s.sold.Load() != 3 {
		t.Errorf("sold %d", s.sold.Load())
	}
	for _, k := range s.keys {
		if !strings.HasPrefix(k, run.ID+"/1.") {
			t.Errorf("key %s", k)
		}
	}
}

func TestCancelWhileAToolRuns(t *testing.T) {
	s := &shop{gate: make(chan struct{})}
	h := open(t, t.TempDir(), sellSteps, s)
	run, err := h.Start(t.Context(), host.Question{Text: "q", Grant: "--yes"})
	if err != nil {
		t.Fatal(err)
	}
	var last tenon.Event
	for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == tenon.EventStarted && e.Step == "1.0" {
			if err := h.Runs().Cancel(t.Context(), run.ID, "enough"); err != nil {
				t.Error(err)
			}
		}
		last = e
	}
	r, err := h.Runs().Open(run.ID).Report(t.Context())
	if err != nil || last.Kind != tenon.EventDone || r.State != tenon.RunCancelled || r.ToolCalls[0].Outcome != view.CallUnknown {
		t.Errorf("ended %s with %s, call %+v, error %v", r.State, last.Kind, r.ToolCalls, err)
	}
}

func TestFailedRunIsTakenUp(t *testing.T) {
	home := t.TempDir()
	h := open(t, home, "steps: [{error: {status: 500, message: down}}]", &shop{})
	r, _ := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunFailed || r.Error == nil {
		t.Fatalf("ended %s %v", r.State, r.Error)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, home, "steps: [{text: up}]", &shop{})
	if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	if r, _ = follow(t, h, r.Run); r.State != tenon.RunCompleted || r.Answer != "up" {
		t.Errorf("ended %s %q %v", r.State, r.Answer, r.Error)
	}
}

func TestRecordAndReplay(t *testing.T) {
	home := t.TempDir()
	steps := filepath.Join(home, "steps.yaml")
	if err := os.WriteFile(steps, []byte("steps: [{calls: [{name: price, arguments: {thing: tea}}]}, {text: three}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(cfg host.Config) (view.Report, error) {
		cfg.Toolsets = map[string]tenon.Toolset{"shop": &shop{}}
		cfg.Model = "script:" + steps
		cfg.LookupEnv = func(string) (string, bool) { return "", false }
		h, err := host.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := ask(t, h, host.Question{Text: "q"})
		return r, h.Close()
	}
	tape := filepath.Join(home, "tape")
	first, err := run(host.Config{Home: filepath.Join(home, "a"), Record: tape})
	if err != nil {
		t.Fatal(err)
	}
	again, err := run(host.Config{Home: filepath.Join(home, "b"), Replay: tape})
	if err != nil || again.Answer != first.Answer || again.Answer != "three" {
		t.Errorf("replay %q %v, error %v", again.Answer, again.Error, err)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	nowhere, err := host.Open(t.Context(), host.Config{LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatalf("without a home: %v", err)
	}
	if err := nowhere.Close(); err != nil {
		t.Error(err)
	}
	h := open(t, t.TempDir(), "steps: [{text: x}]", &shop{})
	for _, q := range []host.Question{{Text: " "}, {Text: "q", Agent: "nope"}, {Text: "q", Session: "nope"}, {Text: "q", Model: "nope"}, {Text: "q", Model: "script:nope.yaml"}, {Text: "q", ToolChoice: "nope"}} {
		_, err := h.Start(t.Context(), q)
		var e *tenon.Error
		if !errors.As(err, &e) || e.Code == tenon.CodeInternal {
			t.Errorf("%+v: error %v", q, err)
		}
	}
	if _, err := h.Runs().Get(t.Context(), "run_nope"); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("error %v", err)
	}
}

func TestReplayReachesTheSame(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{calls: [{name: price, arguments: {thing: tea}}, {name: fail}, {name: nope}]}, {text: done}]", &shop{})
	r, _ := ask(t, h, host.Question{Text: "q"})
	again, err := h.Runs().Open(r.Run).Replay(t.Context())
	if err != nil || !again.Same || again.Commands != 5 { // two model calls, two tool calls and the end of the run
		t.Errorf("replay %+v, error %v", again, err)
	}
}

func TestToolStats(t *testing.T) {
	h := open(t, t.TempDir(), "steps: [{calls: [{name: price, arguments: {thing: tea}}, {name: fail}, {name: nope}, {name: fail}]}, {text: done}]", &shop{})
	ask(t, h, host.Question{Text: "q"})
	list, err := h.Stats(t.Context(), host.StatsQuery{By: host.StatsTools})
	if err != nil || len(list) != 3 {
		t.Fatalf("stats %+v, error %v", list, err)
	}
	if s := list[0]; s.Name != "fail" || s.Calls != 2 || s.Errors != 2 {
		t.Errorf("first %+v", s)
	}
	if s := list[1]; s.Name != "nope" || s.Errors != 1 {
		t.Errorf("second %+v", s)
	}
	for _, per := range []string{host.PerHour, host.PerDay} {
		apart, err := h.Stats(t.Context(), host.StatsQuery{By: host.StatsTools, Per: per})
		if err != nil || len(apart) != 3 || apart[0].Calls != 2 {
			t.Fatalf("per %s: %+v, error %v", per, apart, err)
		}
		if at := apart[0].At; at.IsZero() || at.After(time.Now()) || at.Minute() != 0 || per == host.PerDay && at.Hour() != 0 {
			t.Errorf("per %s it begins at %v", per, at)
		}
	}
	if _, err := h.Stats(t.Context(), host.StatsQuery{By: host.StatsTools, Per: "week"}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("per week: %v", err)
	}
}

// leaky is a server whose result, and error, contain a secret.
type leaky struct{ shop }

func (l *leaky) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	const key = "sk-canary-0123456789"
	if c.Tool == "fail" {
		return nil, tenon.Errorf(tenon.CodeAuth, "bad key %s", key)
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text("the key is " + key)}}, nil
}

func TestSecretsStayOutOfModelJournalAndLogs(t *testing.T) {
	home := t.TempDir()
	var logs strings.Builder
	steps := filepath.Join(home, "steps.yaml")
	if err := os.WriteFile(steps, []byte("steps: [{calls: [{name: price, arguments: {thing: tea}}, {name: fail}]}, {expect: 'the key is ***', text: done}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &config.Config{Models: map[string]model.Config{"real": {Provider: "openai", Model: "m", APIKey: tenon.NewSecret("sk-canary-0123456789")}}}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: home, Toolsets: map[string]tenon.Toolset{"shop": &leaky{}},
		Record: filepath.Join(home, "tape"), Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Touch(t.Context(), h, "real"); err != nil {
		t.Fatal(err)
	}
	r, _ := ask(t, h, host.Question{Text: "q", Model: "script:" + steps})
	if r.State != tenon.RunCompleted {
		t.Errorf("ended %s: %v", r.State, r.Error)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(home, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if strings.Contains(string(b), "canary") {
			t.Errorf("%s holds the secret", filepath.Base(p))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(logs.String(), "canary") {
		t.Errorf("the logs hold the secret: %s", &logs)
	}
}
