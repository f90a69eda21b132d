package agent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestSchedules drives the core through seeded schedules of everything that can
// happen, in every order that the engine allows, with crashes in between. The
// driver checks each one for replay and for a valid history. TENON_SCHEDULES is
// how many there are.
func TestSchedules(t *testing.T) {
	n := 400
	if s := os.Getenv("TENON_SCHEDULES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("TENON_SCHEDULES: %v", err)
		}
	}
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newWorld(t, seed).run() })
	}
}

// world is all that a run meets, at random.
type world struct {
	*rand.Rand
	t     *testing.T
	spec  agent.Spec
	d     *driver
	turns int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), t: t}
	w.spec = agent.Spec{Question: "q", MaxTurns: 6, Parallel: 1 + w.IntN(3), MaxDepth: w.IntN(2), OnLimit: pick(w, "", agent.OnLimitFinal, agent.OnLimitConfirm)}
	if w.IntN(3) == 0 {
		w.spec.MaxToolCalls = 1 + w.IntN(6)
	}
	if w.IntN(3) == 0 {
		w.spec.MaxTokens = 1 + w.IntN(60)
	}
	if w.IntN(3) == 0 {
		w.spec.MaxCost = tenon.USD(1 + w.IntN(50))
	}
	if w.IntN(3) == 0 {
		w.spec.Budgets.Day.Tokens = 1000
	}
	if w.IntN(2) == 0 {
		w.spec.Compaction = agent.Compaction{At: w.IntN(20), Keep: 1 + w.IntN(3), ClearAt: w.IntN(20), KeepResults: 1 + w.IntN(2)}
	}
	w.d = newDriver(t, w.spec, w.do)
	return w
}

func pick[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

func (w *world) do(c tenon.Command) []tenon.Event {
	switch c.Kind {
	case agent.CommandModel, agent.CommandFinal:
		return w.model(c)
	case agent.CommandCompact:
		if w.IntN(3) == 0 {
			return w.fails(c)
		}
		return compacted(c)
	case agent.CommandReserve:
		if w.IntN(3) == 0 {
			return []tenon.Event{{Step: c.Step, Kind: tenon.EventInterrupted}}
		}
		return []tenon.Event{{Step: c.Step, Kind: agent.EventReserved, Data: data(agent.Reserved{})}}
	case agent.CommandDecide:
		return w.decide(c)
	case agent.CommandChild:
		return w.child(c)
	case agent.CommandHandoff:
		return []tenon.Event{{Step: c.Step, Kind: agent.EventHandoff, Data: data(agent.Handoff{Agent: "other", Model: "m2", Text: "over to you"})}}
	}
	return w.tool(c)
}

// fails ends an attempt that may be repeated.
func (w *world) fails(c tenon.Command) []tenon.Event {
	return []tenon.Event{pick(w,
		tenon.Event{Step: c.Step, Kind: tenon.EventInterrupted},
		tenon.Event{Step: c.Step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeModel, "overloaded")})})}
}

func (w *world) model(c tenon.Command) []tenon.Event {
	if w.turns++; w.IntN(5) == 0 {
		return answer(c.Step, "the end")
	}
	switch w.IntN(12) {
	case 0, 1:
		return w.fails(c)
	case 2:
		return stops(tenon.StopContextFull, "")(c.Step)
	case 3:
		return []tenon.Event{{Step: c.Step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeTooLarge, "too long")})}}
	}
	return answer(c.Step, "hm", []string{"a", "b", "c"}[:1+w.IntN(3)]...)
}

func (w *world) decide(c tenon.Command) []tenon.Event {
	var refused *agent.Refusal
	if w.IntN(10) == 0 && w.spec.Budgets.Day.Tokens > 0 {
		refused = &agent.Refusal{Budget: "day", Limit: pick(w, tenon.LimitToolCalls, tenon.LimitTokens), Reason: "used up"}
	}
	if !strings.Contains(c.Step, ".") {
		if w.IntN(6) == 0 {
			return []tenon.Event{{Step: c.Step, Kind: agent.EventReserved, Data: data(agent.Reserved{Queued: true})}}
		}
		return []tenon.Event{{Step: c.Step, Kind: agent.EventReserved, Data: data(agent.Reserved{Refused: refused})}}
	}
	events := decided(c, pick(w, tenon.Allow, tenon.Allow, tenon.Ask, tenon.Deny), w.IntN(2) == 0)
	var d agent.Decision
	_ = json.Unmarshal(events[0].Data, &d)
	d.MaxCalls, d.MaxSession, d.Expires = w.IntN(4), w.IntN(4), time.Duration(w.IntN(2))*time.Hour
	d.Kind = pick(w, "", "", "", agent.KindAgent, agent.KindHandoff)
	if refused != nil {
		d.Verdict, d.By, d.Refused = tenon.Deny, agent.ByBudget, refused
	}
	events[0].Data = data(d)
	return events
}

func (w *world) child(c tenon.Command) []tenon.Event {
	switch w.IntN(5) {
	case 0:
		return []tenon.Event{{Step: c.Step, Kind: tenon.EventInterrupted}}
	case 1:
		return []tenon.Event{{Step: c.Step, Kind: agent.EventChild, Data: data(agent.ChildWaits{Run: "run_1/" + c.Step})}}
	case 2:
		return []tenon.Event{{Step: c.Step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "gone"), Retry: w.IntN(2) == 0})}}
	}
	return spent(c.Step, "ok", w.IntN(20))
}

func (w *world) tool(c tenon.Command) []tenon.Event {
	questions(w.d, c.Step, w.Rand)
	switch w.IntN(8) {
	case 0:
		return []tenon.Event{{Step: c.Step, Kind: tenon.EventUnknown}}
	case 1:
		return []tenon.Event{{Step: c.Step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "gone"), Retry: c.Idempotent})}}
	case 2:
		if c.Idempotent {
			return []tenon.Event{{Step: c.Step, Kind: tenon.EventInterrupted}}
		}
	case 3:
		return []tenon.Event{{Step: c.Step, Kind: agent.EventInput, Data: data(tenon.InputRequired{State: "s"})}}
	}
	return result(c.Step, strings.Repeat("ok ", 200*w.IntN(2)), w.IntN(4) == 0)
}

// run lets things happen until the run has ended for good.
func (w *world) run() {
	for range 500 {
		if w.IntN(60) == 0 {
			w.d.apply(tenon.Event{Kind: agent.EventMessage, Data: data(agent.Steer{Text: "by the way"})})
		}
		if w.IntN(150) == 0 && w.d.done == nil {
			w.d.apply(tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{})})
		}
		if w.d.step(w.IntN) {
			continue
		}
		if w.d.done != nil {
			if w.d.done.State != tenon.RunFailed || w.IntN(2) == 0 {
				return
			}
			w.d.done = nil
			w.d.apply(tenon.Event{Kind: tenon.EventRetry})
			continue
		}
		waits := w.d.core.Next()
		if len(waits) == 0 {
			w.t.Fatal("nothing to do and nothing to wait for")
		}
		w.answer(waits[w.IntN(len(waits))])
	}
}

// answer ends a wait.
func (w *world) answer(c tenon.Command) {
	var a agent.Asking
	if err := json.Unmarshal(c.Data, &a); err != nil {
		w.t.Fatal(err)
	}
	e := tenon.Event{Step: c.Step}
	switch {
	case c.After > 0 && w.IntN(2) == 0:
		e.Kind = tenon.EventExpired
	case a.Kind == agent.AskChild:
		e.Kind = agent.EventWake
	case a.Kind == agent.AskInput:
		e.Kind, e.Data = agent.EventAnswer, data(tenon.InputAnswer{State: "s"})
	default:
		e.Kind, e.Data = agent.EventDecision, data(agent.Ruling{Verdict: pick(w, tenon.Allow, tenon.Deny), By: "local",
			Remember: pick(w, "", agent.RememberSession, agent.RememberAlways)})
	}
	w.d.apply(e)
}
