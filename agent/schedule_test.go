package agent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestSchedules runs the core through random schedules of everything that can happen, in every order that the engine
// allows: calls that overlap, crashes that lose events that were not stored, repeated and invalid signals, clocks that
// jump, cancels at any time, and a second run in the same session. TENON_SCHEDULES is the number of schedules. A
// subtest has its seed as its name, so that a failure can be repeated.
func TestSchedules(t *testing.T) {
	n := 400
	if s := os.Getenv("TENON_SCHEDULES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("TENON_SCHEDULES: %v", err)
		}
	}
	var sum tally
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		const lanes = 4
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for seed := lane; seed < n; seed += lanes {
					t.Run(fmt.Sprint(seed), func(t *testing.T) {
						w := newWorld(t, uint64(seed))
						w.run()
						sum.add(w)
					})
				}
			})
		}
	})
	t.Logf("%d schedules in %s: %s", n, time.Since(began).Round(time.Millisecond), &sum)
}

// tally counts what happened in all schedules.
type tally struct {
	events, crashes, lost, calls, unknown, again, cancelled atomic.Int64
}

func (n *tally) add(w *world) {
	n.events.Add(int64(w.events + len(w.d.journal)))
	n.crashes.Add(int64(w.crashes))
	n.lost.Add(int64(w.lost))
	n.calls.Add(int64(w.calls))
	n.unknown.Add(int64(w.unknown))
	n.again.Add(int64(w.again))
	n.cancelled.Add(int64(w.cancels))
}

func (n *tally) String() string {
	return fmt.Sprintf("%d events, %d crashes that lost %d events not stored, %d finished calls (0 repeated), %d unknown, %d safe attempts made again, %d cancels",
		n.events.Load(), n.crashes.Load(), n.lost.Load(), n.calls.Load(), n.unknown.Load(), n.again.Load(), n.cancelled.Load())
}

// world simulates everything around a run, in a random order: the engine, the model, tools, persons and crashes.
type world struct {
	*rand.Rand
	t       *testing.T
	spec    agent.Spec
	d       *driver
	flights []tenon.Command // begun, and not ended
	stored  int             // number of events of the journal that survive a crash
	second  bool            // the run continues the conversation of an earlier run
	moves   int

	events, crashes, lost, calls, unknown, again, cancels int
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
	if w.IntN(3) == 0 {
		w.spec.Timeout = time.Duration(1+w.IntN(240)) * time.Minute
	}
	w.begin(nil)
	return w
}

// begin starts a run. With a parent, the run belongs to the parent's session.
func (w *world) begin(parent *agent.State) {
	w.d = &driver{t: w.t, spec: w.spec, parent: parent, do: w.do, now: began, attempt: map[string]int{}, seldom: w.IntN}
	w.d.core = agent.New(w.spec, parent)
	w.d.apply(tenon.Event{Kind: tenon.EventRun})
	w.stored, w.moves = 1, 0
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

// fails ends an attempt in a way that allows another attempt.
func (w *world) fails(c tenon.Command) []tenon.Event {
	return []tenon.Event{pick(w,
		tenon.Event{Step: c.Step, Kind: tenon.EventInterrupted},
		tenon.Event{Step: c.Step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeModel, "overloaded")})})}
}

func (w *world) model(c tenon.Command) []tenon.Event {
	if w.IntN(5) == 0 {
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
