package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// calls returns an answer that calls tools. Each element of list is "NAME ARGUMENTS".
func calls(list ...string) *tenon.Response {
	r := says("")
	r.Stop, r.Message.Parts = tenon.StopToolUse, nil
	for i, c := range list {
		name, args, _ := strings.Cut(c, " ")
		r.Message.Parts = append(r.Message.Parts, tenon.Part{Type: tenon.PartCall,
			Call: &tenon.ToolCall{ID: fmt.Sprint("id", i), Name: name, Arguments: json.RawMessage(args)}})
	}
	return r
}

// team opens a host with three agents: a lead, a researcher that the lead can ask, and a clerk to whom the lead can
// hand the conversation over. The function m plays the models of all agents. It gets the agent's name from the
// instructions.
func team(t *testing.T, home string, s *shop, m func(name string, req *tenon.Request) *tenon.Response) *host.Host {
	t.Helper()
	agents := map[string]agent.Config{}
	for _, name := range []string{"lead", "researcher", "clerk"} {
		a := agent.Config{Description: "the " + name, Instructions: agent.Instructions{Text: name}}
		if name == "lead" {
			a.Handoffs = []string{"clerk"}
		}
		agents[name] = a.WithDefaults()
	}
	c := &config.Config{Agents: agents, Tools: map[string]catalog.Tool{"research": {Kind: tenon.KindAgent, Agent: "researcher"}}}
	h, err := host.Open(t.Context(), host.Config{Config: c, Home: home, Model: "m", Toolsets: map[string]tenon.Toolset{"shop": s},
		Models:    map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) { return m(req.System, req), nil })},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// lastText returns the text of the last message of a request: the last tool result or the last words.
func lastText(req *tenon.Request) string {
	m := req.Messages[len(req.Messages)-1]
	if m.Role == tenon.RoleTool {
		r := tenon.Result{Content: m.Parts[len(m.Parts)-1].Result.Content}
		return r.Text()
	}
	return m.Text()
}

func names(req *tenon.Request) (list []string) {
	for _, t := range req.Tools {
		list = append(list, t.Name)
	}
	return list
}

// TestSubAgent checks that an agent can ask another agent. The other agent works in a separate run, and its token use
// is charged to the caller.
func TestSubAgent(t *testing.T) {
	seen, followed := map[string][]string{}, make(chan struct{})
	h := team(t, t.TempDir(), &shop{}, func(name string, req *tenon.Request) *tenon.Response {
		seen[name] = names(req)
		last := lastText(req)
		switch {
		case name == "lead" && last == "How much is tea?":
			return calls(`research {"message":"Find the price of tea."}`)
		case name == "researcher" && last == "Find the price of tea.":
			<-followed // live events reach only the followers that are connected
			return calls(`price {"thing":"tea"}`)
		}
		return says(name + ": " + last)
	})
	run, err := h.Start(t.Context(), host.Question{Text: "How much is tea?", Agent: "lead"})
	if err != nil {
		t.Fatal(err)
	}
	var events []tenon.Event
	for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, e); len(events) == 1 {
			close(followed)
		}
	}
	r, err := h.Runs().Open(run.ID).Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Answer != "lead: researcher: 3 EUR" {
		t.Fatalf("answer %q (%v)", r.Answer, r.Error)
	}
	if r.Usage.Input != 400 {
		t.Errorf("usage %+v, want that of four model requests", r.Usage)
	}
	if len(r.ToolCalls) != 1 || r.ToolCalls[0].Kind != agent.KindAgent || r.ToolCalls[0].Name != "research" {
		t.Errorf("calls %+v", r.ToolCalls)
	}
	want := map[string][]string{"lead": {"fail", "gone", "price", "research", "sell", "transfer_to_clerk"}, "researcher": {"fail", "gone", "price", "sell"}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("tools on offer (-want +got):\n%s", diff)
	}
	child, err := h.Runs().Open(r.Run + "/1.0").Report(t.Context())
	if err != nil || child.Answer != "researcher: 3 EUR" || child.Session != r.Session || len(child.ToolCalls) != 1 {
		t.Errorf("the called run: %+v %v", child, err)
	}
	s, err := h.Sessions().Get(t.Context(), r.Session)
	if err != nil || s.Runs != 1 || s.Head != r.Run {
		t.Errorf("the session: %+v %v", s, err)
	}
	passed := 0
	for _, e := range events {
		if e.Kind == agent.LiveChild {
			passed++
		}
	}
	if passed == 0 {
		t.Error("nothing of the called run was passed on")
	}
	replay(t, h, r.Session)
}

// TestSubAgentWaits checks that the caller of an agent waits while the called agent waits for a person. One resume in
// another process continues both runs.
func TestSubAgentWaits(t *testing.T) {
	play := func(name string, req *tenon.Request) *tenon.Response {
		last := lastText(req)
		switch {
		case name == "lead" && last == "Sell tea.":
			return calls(`research {"message":"Sell it."}`)
		case name == "researcher" && last == "Sell it.":
			return calls(`sell {}`)
		}
		return says(name + ": " + last)
	}
	home, s := t.TempDir(), &shop{}
	h := team(t, home, s, play)
	r, _ := ask(t, h, host.Question{Text: "Sell tea.", Agent: "lead"})
	if r.State != tenon.RunInputRequired || len(r.Waiting) != 1 {
		t.Fatalf("%s %+v", r.State, r.Waiting)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = team(t, home, s, play)
	list, err := h.Approvals().List(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].ID != r.Run+"/1.0/1.0" || list[0].Remote != "sell" {
		t.Fatalf("approvals %+v %v", list, err)
	}
	awaited, err := h.Approvals().List(t.Context(), r.Run)
	if err != nil || len(awaited) != 1 || awaited[0].ID != list[0].ID {
		t.Fatalf("awaited %+v %v", awaited, err)
	}
	if _, _, err := h.Approvals().Decide(t.Context(), list[0].Run, list[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), list[0].Run); err != nil { // this also continues its caller
		t.Fatal(err)
	}
	if r, _ := follow(t, h, r.Run); r.Answer != "lead: researcher: sold" || s.sold.Load() != 1 {
		t.Errorf("%s %q, sold %d", r.State, r.Answer, s.sold.Load())
	}
}

// TestSubAgentCancelled checks that cancelling a caller also ends the called run, whether that run is working or
// waiting.
func TestSubAgentCancelled(t *testing.T) {
	for _, rest := range []bool{false, true} {
		t.Run(fmt.Sprint("at rest ", rest), func(t *testing.T) {
			s := &shop{gate: make(chan struct{})}
			h := team(t, t.TempDir(), s, func(name string, req *tenon.Request) *tenon.Response {
				if name == "lead" {
					return calls(`research {"message":"Sell it."}`)
				}
				return calls(`sell {}`)
			})
			q := host.Question{Text: "Sell tea.", Agent: "lead"}
			if !rest {
				q.Grant = "--yes"
			}
			run, err := h.Start(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				var child tenon.Event
				if e.Kind == agent.LiveChild && json.Unmarshal(e.Data, &child) == nil && child.Kind == tenon.EventStarted && child.Step == "1.0" {
					break // the shop is at it
				}
			}
			if err := h.Runs().Cancel(t.Context(), run.ID, "enough"); err != nil {
				t.Fatal(err)
			}
			if r, _ := follow(t, h, run.ID); r.State != tenon.RunCancelled {
				t.Errorf("the caller is %s", r.State)
			}
			if r, _ := follow(t, h, run.ID+"/1.0"); r.State != tenon.RunCancelled {
				t.Errorf("the called run is %s", r.State)
			}
			if err := h.Runs().Resume(t.Context(), run.ID+"/1.0"); tenon.ErrorCode(err) != tenon.CodeConflict {
				t.Errorf("a called run without its caller: %v", err)
			}
		})
	}
}

// TestHandoff checks that after a handoff the next question of the session goes to the new agent.
func TestHandoff(t *testing.T) {
	h := team(t, t.TempDir(), &shop{}, func(name string, req *tenon.Request) *tenon.Response {
		if name == "lead" && len(req.Messages) == 1 {
			return calls(`transfer_to_clerk {"reason":"a form"}`)
		}
		return says(name + " of " + fmt.Sprint(len(req.Messages)))
	})
	r, _ := ask(t, h, host.Question{Text: "A form, please.", Agent: "lead"})
	if r.Answer != "clerk of 3" || r.ToolCalls[0].Kind != agent.KindHandoff || !r.ToolCalls[0].Success {
		t.Fatalf("%+v", r)
	}
	if r, _ = ask(t, h, host.Question{Text: "Thanks.", Session: r.Session}); r.Answer != "clerk of 5" || r.Agent != "clerk" {
		t.Errorf("%s: %s", r.Agent, r.Answer)
	}
	if r, _ = ask(t, h, host.Question{Text: "Lead again.", Session: r.Session, Agent: "lead"}); r.Answer != "lead of 7" {
		t.Errorf("%s: %s", r.Agent, r.Answer)
	}
	if r, _ = ask(t, h, host.Question{Text: "And on?", Session: r.Session}); r.Agent != "lead" {
		t.Errorf("a person's choice of agent was forgotten: %s", r.Agent)
	}
}
