package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// curious is a toolset whose tool asks the questions in its arguments and returns the answers.
type curious struct{}

func (curious) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "ask", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (curious) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	var in struct {
		Method   string
		Params   json.RawMessage
		Times    int
		Requests json.RawMessage
	}
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return nil, err
	}
	if in.Requests != nil {
		if c.Input != nil {
			return &tenon.Result{Content: []tenon.Content{tenon.Text(string(c.Input.Responses) + c.Input.State)}}, nil
		}
		return &tenon.Result{Input: &tenon.InputRequired{Requests: in.Requests, State: "s"}}, nil
	}
	var all []string
	for range max(in.Times, 1) {
		answer, err := c.Ask(ctx, in.Method, in.Params)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			answer = json.RawMessage(err.Error())
		}
		all = append(all, string(answer))
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(strings.Join(all, "\n"))}}, nil
}

const (
	whoForm  = `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":2},"password":{"type":"string"}},"required":["name"]}}`
	capital  = `{"maxTokens":50,"messages":[{"role":"user","content":{"type":"text","text":"The capital of France?"}}]}`
	sampling = "sampling/createMessage"
)

// openCurious opens a host with a server that may ask questions.
func openCurious(t *testing.T, attended bool, c servers.Config) *host.Host {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "steps.yaml")
	if err := os.WriteFile(file, []byte("steps:\n  - text: Paris\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.URL = servedTools(t, mcp.ServerConfig{Name: "crm", Version: "1"}) // its toolset is replaced
	h, err := host.Open(t.Context(), host.Config{Config: &config.Config{Servers: map[string]servers.Config{"crm": c}}, Home: home, Model: "script:" + file,
		Wrap: func(string, tenon.Toolset) tenon.Toolset { return curious{} }, Interactive: attended, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// callAsked makes a call and answers its questions with the rulings, one after another.
func callAsked(t *testing.T, h *host.Host, args string, rulings ...agent.Ruling) (string, []tenon.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run, err := h.Tools().Start(ctx, host.ToolCall{Name: "ask", Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(step string) {
		r := rulings[0]
		rulings = rulings[1:]
		if _, mine, err := h.Approvals().Decide(ctx, run.ID, step, r); err != nil || !mine {
			t.Errorf("the answer to %s: mine %v, %v", step, mine, err)
		}
	}
	var events []tenon.Event
	var result *tenon.Result
	for after := uint64(0); ; {
		result, err = host.FollowCall(ctx, h.Runs(), run.ID, after, func(e tenon.Event) {
			if e.Seq > 0 {
				after = e.Seq
				events = append(events, e)
			}
			var q agent.Question
			if e.Kind == tenon.EventQuestion && json.Unmarshal(e.Data, &q) == nil && q.Verdict == tenon.Ask {
				answer(e.Step)
			}
		})
		if tenon.ErrorCode(err) != tenon.CodeWaiting || len(rulings) == 0 {
			break
		}
		answer("1.0")
		if err := h.Runs().Resume(ctx, run.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		return err.Error(), events
	}
	return result.Text(), events
}

func ask1(method, params string) string {
	return `{"method":"` + method + `","params":` + params + `}`
}

// TestQuestionsAreJournaledAndAnswered asks questions of every kind that a server can ask.
func TestQuestionsAreJournaledAndAnswered(t *testing.T) {
	yes := func(args string) agent.Ruling {
		return agent.Ruling{Verdict: tenon.Allow, By: "ann", Arguments: json.RawMessage(args)}
	}
	no := agent.Ruling{Verdict: tenon.Deny, By: "ann", Reason: "not now"}
	const said = `{"content":{"text":"Paris","type":"text"},"model":"script/steps.yaml","role":"assistant","stopReason":"endTurn"}`
	tests := map[string]struct {
		attended bool
		config   servers.Config
		args     string
		rulings  []agent.Ruling
		want     string
		kinds    string
	}{
		"a form": {true, servers.Config{}, ask1("elicitation/create", whoForm), []agent.Ruling{yes(`{"name":"Ann"}`)},
			`{"action":"accept","content":{"name":"Ann"}}`, "question:1.0/q1 answer:1.0/q1 result:1.0"},
		"declined": {true, servers.Config{}, ask1("elicitation/create", whoForm), []agent.Ruling{no}, `{"action":"decline"}`, "question:1.0/q1 answer:1.0/q1 result:1.0"},
		"nobody":   {false, servers.Config{}, ask1("elicitation/create", whoForm), nil, `{"action":"decline"}`, "question:1.0/q1 answer:1.0/q1 result:1.0"},
		"a url": {true, servers.Config{}, ask1("elicitation/create", `{"mode":"url","message":"m","url":"https://x.example"}`), []agent.Ruling{yes("")},
			`{"action":"accept"}`, "question:1.0/q1 answer:1.0/q1 result:1.0"},
		"no form": {true, servers.Config{}, ask1("elicitation/create", `{"message":"m"}`), nil,
			"the server's question is not one of the protocol: requestedSchema must be a schema of type object", "result:1.0"},
		"sampling allowed": {false, servers.Config{Sampling: servers.AnswerAllow}, ask1(sampling, capital), nil, said, "question:1.0/q1 answer:1.0/q1 result:1.0"},
		"sampling asked": {true, servers.Config{Sampling: servers.AnswerAsk}, ask1(sampling, capital), []agent.Ruling{yes("")}, said,
			"question:1.0/q1 decision:1.0/q1 answer:1.0/q1 result:1.0"},
		"sampling refused": {true, servers.Config{Sampling: servers.AnswerAsk}, ask1(sampling, capital), []agent.Ruling{no}, "Sampling denied by ann: not now",
			"question:1.0/q1 decision:1.0/q1 answer:1.0/q1 result:1.0"},
		"sampling with nobody": {false, servers.Config{Sampling: servers.AnswerAsk}, ask1(sampling, capital), nil,
			"Sampling denied: nobody is there to answer: this process has no terminal, and was not told to wait", "question:1.0/q1 answer:1.0/q1 result:1.0"},
		"sampling of nothing": {false, servers.Config{Sampling: servers.AnswerAllow}, ask1(sampling, `{"messages":[]}`), nil,
			"the request for sampling is not one of the protocol: it has no messages", "question:1.0/q1 answer:1.0/q1 result:1.0"},
		"sampling too often": {false, servers.Config{Sampling: servers.AnswerAllow, SamplingLimits: servers.SamplingLimits{PerCall: 1}},
			`{"times":2,"method":"` + sampling + `","params":` + capital + `}`, nil,
			said + "\nSampling denied: 1 answers during one call are the limit (servers.crm.sampling_limits.per_call)", "question:1.0/q1 answer:1.0/q1 question:1.0/q2 answer:1.0/q2 result:1.0"},
		"modern, mixed": {true, servers.Config{Sampling: servers.AnswerAllow, Roots: []string{"/w"}},
			`{"requests":{"who":{"method":"elicitation/create","params":` + whoForm + `},"roots":{"method":"roots/list"},"cap":{"method":"` + sampling + `","params":` + capital + `}}}`,
			[]agent.Ruling{yes(`{"name":"Ann"}`)},
			`{"cap":` + said + `,"roots":{"roots":[{"uri":"file:///w","name":"w"}]},"who":{"action":"accept","content":{"name":"Ann"}}}s`, "input_required:1.0 answer:1.0 result:1.0"},
		"modern, without a person": {false, servers.Config{Roots: []string{"/w"}}, `{"requests":{"roots":{"method":"roots/list"}}}`, nil,
			`{"roots":{"roots":[{"uri":"file:///w","name":"w"}]}}s`, "input_required:1.0 answer:1.0 result:1.0"},
		"modern, sampling asked": {true, servers.Config{Sampling: servers.AnswerAsk}, `{"requests":{"cap":{"method":"` + sampling + `","params":` + capital + `}}}`,
			[]agent.Ruling{yes("")}, `{"cap":` + said + `}s`, "input_required:1.0 answer:1.0 result:1.0"},
		"modern, sampling refused": {true, servers.Config{Sampling: servers.AnswerAsk}, `{"requests":{"cap":{"method":"` + sampling + `","params":` + capital + `}}}`,
			[]agent.Ruling{no}, "Sampling denied by ann: not now", "input_required:1.0 answer:1.0"},
		"modern, not offered": {true, servers.Config{}, `{"requests":{"cap":{"method":"` + sampling + `","params":` + capital + `}}}`, nil,
			"server 'crm' asks for what it was not offered: Sampling denied: it is not configured for this server (JSON-RPC error -32601)", "failed:1.0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := openCurious(t, tt.attended, tt.config)
			got, events := callAsked(t, h, tt.args, tt.rulings...)
			if got != tt.want {
				t.Errorf("the server was told\n     %s\nwant %s", got, tt.want)
			}
			var kinds []string
			for _, e := range events {
				switch e.Kind {
				case tenon.EventQuestion, agent.EventAnswer, agent.EventDecision, agent.EventInput, agent.EventResult, agent.EventFailed, tenon.EventExpired:
					kinds = append(kinds, e.Kind+":"+e.Step)
				}
			}
			if got := strings.Join(kinds, " "); got != tt.kinds {
				t.Errorf("journal %s, want %s", got, tt.kinds)
			}
		})
	}
}

// TestAnswersAreChecked checks that an answer that violates the schema is refused, and that the first valid answer
// wins. If the name or title of a field suggests a secret, the journal masks its value.
func TestAnswersAreChecked(t *testing.T) {
	h := openCurious(t, true, servers.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run, err := h.Tools().Start(ctx, host.ToolCall{Name: "ask", Arguments: json.RawMessage(ask1("elicitation/create", whoForm))})
	if err != nil {
		t.Fatal(err)
	}
	var list []host.Approval
	for len(list) == 0 && ctx.Err() == nil {
		if list, err = h.Approvals().List(ctx, ""); err != nil {
			t.Fatal(err)
		}
	}
	if row, err := h.Runs().Get(ctx, run.ID); err != nil || row.State != tenon.RunWorking || list[0].ID != run.ID+"/1.0/q1" || list[0].Kind != agent.AskInput || !list[0].Live {
		t.Fatalf("row %+v, waits %+v, %v", row, list, err)
	}
	settle := func(args string) (tenon.Event, bool, error) {
		return h.Approvals().Decide(ctx, run.ID, "1.0/q1", agent.Ruling{Verdict: tenon.Allow, By: "ann", Arguments: json.RawMessage(args)})
	}
	if _, _, err := settle(`{"name":"A"}`); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("a name that is too short: %v", err)
	}
	if _, mine, err := settle(`{"name":"Ann","password":"hunter2hunter2"}`); err != nil || !mine {
		t.Errorf("the first: mine %v, %v", mine, err)
	}
	won, mine, err := settle(`{"name":"Bob"}`)
	if err != nil || mine || won.Kind != agent.EventAnswer || !strings.Contains(string(won.Data), "Ann") {
		t.Errorf("the second is told %s %s, mine %v, %v", won.Kind, won.Data, mine, err)
	}
	r, err := host.FollowCall(ctx, h.Runs(), run.ID, 0, func(tenon.Event) {})
	if err != nil || r.Text() != `{"action":"accept","content":{"name":"Ann","password":"***"}}` {
		t.Errorf("the result is %v, %v; want the password masked", r, err)
	}
}

// TestQuestionsHoldNoSecret checks that a question that contains a secret is refused and not stored if the secret
// cannot be masked. For example, a number has no masked form.
func TestQuestionsHoldNoSecret(t *testing.T) {
	h := openCurious(t, true, servers.Config{})
	h.Service().Callers().RegisterSecret(tenon.NewSecret("739184652"))
	form := `{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":739184652}}}}`
	said, events := callAsked(t, h, ask1("elicitation/create", form), agent.Ruling{Verdict: tenon.Deny, By: "ann"})
	if !strings.Contains(said, "asks with a configured secret where it cannot be masked") {
		t.Errorf("the server was told %q", said)
	}
	for _, e := range events {
		if e.Kind == tenon.EventQuestion {
			t.Errorf("kept %s", e.Data)
		}
	}
}

// TestQuestionsExpire checks that a question ends with its run.
func TestQuestionsExpire(t *testing.T) {
	h := openCurious(t, true, servers.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run, err := h.Tools().Start(ctx, host.ToolCall{Name: "ask", Arguments: json.RawMessage(ask1("elicitation/create", whoForm))})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range h.Runs().Events(ctx, run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == tenon.EventQuestion {
			break
		}
	}
	if err := h.Runs().Cancel(ctx, run.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	for range h.Runs().Events(ctx, run.ID, 0) {
	}
	report, err := h.Runs().Open(run.ID).Report(ctx)
	if err != nil || report.State != tenon.RunCancelled || len(report.ToolCalls) != 1 || len(report.ToolCalls[0].Questions) != 1 || report.ToolCalls[0].Questions[0].Outcome != view.AskedExpired {
		t.Errorf("%+v, %v", report, err)
	}
	if _, _, err := h.Approvals().Decide(ctx, run.ID, "1.0/q1", agent.Ruling{Verdict: tenon.Allow}); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("an answer after the end: %v", err)
	}
}
