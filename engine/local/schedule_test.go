package local

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
)

// TestSchedules lets this engine work on agents, with an in-memory store and a fake clock. Processes die
// between any two writes and lose their leases. Decisions arrive twice and from other processes, and every
// operation takes time. TENON_SCHEDULES is the number of schedules, divided by ten.
func TestSchedules(t *testing.T) {
	n := 40
	if s := os.Getenv("TENON_SCHEDULES"); s != "" {
		all, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("TENON_SCHEDULES: %v", err)
		}
		n = all / 10
	}
	var sum [5]int // deaths, calls, unknown, retried, cancelled
	began := time.Now()
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, disk: newDisk(), rand: rand.New(rand.NewPCG(uint64(seed), 2)),
					effects: map[string]int{}, said: map[uint64]string{}}
				w.play()
				w.check()
				for i, k := range []int{w.deaths, w.calls, w.unknown, w.again, w.cancels} {
					sum[i] += k
				}
			})
		})
	}
	t.Logf(
		"%d schedules in %s: %d processes died, %d finished calls (0 repeated), %d unknown, %d attempts made again, "+
			"%d runs cancelled",
		n, time.Since(began).Round(time.Millisecond), sum[0], sum[1], sum[2], sum[3], sum[4])
}

const theRun = "run_1"

type world struct {
	t    *testing.T
	disk *disk

	mu      sync.Mutex
	rand    *rand.Rand
	effects map[string]int // count by step
	said    map[uint64]string

	deaths, calls, unknown, again, cancels int
}

func (w *world) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

func (w *world) pause(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(time.Duration(w.n(int(most)))):
	case <-ctx.Done():
	}
}

func event1(step, kind string, v any) []tenon.Event {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: written by this test
	}
	return []tenon.Event{{Step: step, Kind: kind, Data: data}}
}

// do is the executor of one process.
func (w *world) do(p *proc) engine.Do {
	return func(ctx context.Context, _ string, a engine.Attempt, _ func(tenon.Event)) ([]tenon.Event, error) {
		if a.Kind == agent.CommandDecide {
			c, err := tenon.CommandData[agent.DecideCommand](a.Command)
			if err != nil {
				return nil, err
			}
			d := agent.Decision{Verdict: tenon.Allow, By: agent.ByPolicy, Server: "s", Remote: c.Call.Name,
				Arguments: c.Call.Arguments, Idempotent: c.Call.Name == "safe"}
			if c.Call.Name == "asked" {
				d.Verdict = tenon.Ask
			}
			return event1(a.Step, agent.EventDecided, d), nil
		}
		w.pause(ctx, 2*time.Second)
		if ctx.Err() != nil || p.isDead() {
			return nil, tenon.Errorf(tenon.CodeCancelled, "the process is ending")
		}
		if a.Kind == agent.CommandModel {
			return w.answer(a.Step), nil
		}
		w.mu.Lock()
		w.effects[a.Step]++
		w.mu.Unlock()
		w.pause(ctx, 2*time.Second)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if a.Idempotent && w.n(5) == 0 {
			return event1(a.Step, agent.EventFailed, agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "gone"),
				Retry: true}), nil
		}
		return event1(a.Step, agent.EventResult,
			agent.Outcome{Result: &tenon.Result{Content: []tenon.Content{tenon.Text("ok")}}}), nil
	}
}

func (w *world) answer(step string) []tenon.Event {
	r := tenon.Response{Stop: tenon.StopEnd, Message: &tenon.Message{Role: tenon.RoleAssistant,
		Parts: []tenon.Part{{Type: tenon.PartText, Text: "hm"}}}}
	if turn, _ := strconv.Atoi(step); turn < 4 {
		r.Stop = tenon.StopToolUse
		for i := range 1 + w.n(4) {
			r.Message.Parts = append(r.Message.Parts,
				tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: fmt.Sprintf("id-%s-%d", step, i),
					Name: []string{"safe", "unsafe", "asked"}[w.n(3)], Arguments: json.RawMessage("{}")}})
		}
	}
	events := event1(step, agent.EventModel, r)
	for i, c := range r.Message.Calls() {
		events = append(events, event1(fmt.Sprintf("%s.%d", step, i), agent.EventProposed, c)...)
	}
	return events
}

func newAgent(_ context.Context, spec engine.Spec) (tenon.Core, error) {
	var s agent.Spec
	if err := json.Unmarshal(spec.Data, &s); err != nil {
		return nil, err
	}
	return agent.New(s, nil), nil
}

func (w *world) open() (*proc, *Engine) {
	p := &proc{disk: w.disk}
	e, err := New(Config{Store: p, NewCore: newAgent, Do: w.do(p)})
	if err != nil {
		w.t.Fatal(err)
	}
	return p, e
}

// play drives the run to its end while its processes die.
func (w *world) play() {
	other, beside := w.open() // a process that decides and cancels, and never dies
	defer func() { _ = beside.Close() }()
	for life := 0; !w.ended(other); life++ {
		if life > 50 {
			w.t.Fatal("the run does not end")
		}
		p, e := w.open()
		if life < 6 && w.n(5) > 0 {
			p.appends, p.after = 1+w.n(14), w.n(2) == 0
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+w.n(30))*time.Second)
		w.live(ctx, e, beside)
		if w.n(40) == 0 {
			w.cancels++
			if err := beside.Cancel(context.Background(), theRun, "enough"); err != nil &&
				tenon.ErrorCode(err) != tenon.CodeNotFound {
				w.t.Errorf("cancel: %v", err)
			}
		}
		if p.isDead() || w.n(2) == 0 && life < 6 {
			w.deaths++
			p.die()
		}
		cancel()
		_ = e.Close() // returns an error for a dead process
	}
}

func (w *world) ended(p *proc) bool {
	row, err := p.Run(context.Background(), theRun)
	return err == nil && row.State.Ended()
}

// live follows the run in one process. It answers each wait twice, in this process and in another.
func (w *world) live(ctx context.Context, e, beside *Engine) {
	data, _ := json.Marshal(agent.Spec{Question: "q", Parallel: 2, MaxTurns: 10})
	for ctx.Err() == nil {
		if err := e.Start(ctx, engine.Spec{Run: tenon.Run{ID: theRun, Core: agent.Version}, Data: data}); err != nil {
			return // the process is dead, or time is up
		}
		var waits []tenon.Waiting
		for ev, err := range e.Events(ctx, theRun, 0) {
			if err != nil {
				return
			}
			if ev.Kind == engine.EventWaiting {
				_ = json.Unmarshal(ev.Data, &waits)
			}
			if ev.Seq > 0 {
				w.said[ev.Seq] = ev.Kind + " " + ev.Step
			}
		}
		if len(waits) == 0 {
			return
		}
		w.pause(ctx, time.Minute)
		var wg sync.WaitGroup
		for i, at := range []*Engine{e, beside, beside} {
			s := engine.Signal{ID: fmt.Sprintf("%s/%d", waits[0].Step, i/2), Kind: agent.EventDecision,
				Step: waits[0].Step,
				Data: event1("", "", agent.Ruling{Verdict: []tenon.Verdict{tenon.Allow, tenon.Deny}[i/2],
					By: "ann"})[0].Data}
			wg.Go(func() {
				w.pause(ctx, time.Second)
				_, _ = at.Signal(ctx, theRun, s) // the journal shows which decision won
			})
		}
		wg.Wait()
	}
}

// check compares the journal with the observed events and effects.
func (w *world) check() {
	journal := w.disk.events[theRun]
	var spec engine.Spec
	if err := json.Unmarshal(journal[0].Data, &spec); err != nil {
		w.t.Fatal(err)
	}
	core, _ := newAgent(context.Background(), spec)
	ends, starts, decisions := map[string][]string{}, map[string]int{}, map[string]int{}
	proposed := map[string]string{}
	for i, e := range journal {
		if e.Seq != uint64(i+1) {
			w.t.Fatalf("event %d is at position %d", e.Seq, i+1)
		}
		if err := core.Apply(e); err != nil {
			w.t.Fatalf("the journal does not fold: %v", err)
		}
		switch e.Kind {
		case agent.EventProposed:
			var c tenon.ToolCall
			_ = json.Unmarshal(e.Data, &c)
			proposed[e.Step] = c.Name
		case tenon.EventStarted:
			starts[e.Step]++
			if len(ends[e.Step]) > 0 {
				w.t.Errorf("step %s started again after its end", e.Step)
			}
		case agent.EventDecision:
			decisions[e.Step]++
		case agent.EventResult, tenon.EventUnknown:
			ends[e.Step] = append(ends[e.Step], e.Kind)
		}
	}
	if next := core.Next(); len(next) > 0 || journal[len(journal)-1].Kind != tenon.EventDone {
		w.t.Errorf("the run has ended, but its core returns %v", next)
	}
	for seq, said := range w.said {
		if e := journal[min(seq, uint64(len(journal)))-1]; e.Seq != seq || e.Kind+" "+e.Step != said {
			w.t.Errorf("event %d (%s) was observed but is lost", seq, said)
		}
	}
	for step, name := range proposed {
		did := w.effects[step]
		w.again += max(starts[step]-1, 0)
		switch end := strings.Join(ends[step], " "); {
		case len(ends[step]) > 1, decisions[step] > 1, did > starts[step], name != "safe" && did > 1, name == "safe" &&
			end == tenon.EventUnknown, end == agent.EventResult && did == 0:
			w.t.Errorf("step %s (%s): %d decisions, %d starts, ends %q, %d effects", step, name, decisions[step],
				starts[step], end, did)
		case end == tenon.EventUnknown:
			w.unknown++
		case end != "":
			w.calls++
		case starts[step] > 0 && name != "safe":
			w.t.Errorf("step %s (%s) started %d times and has no end", step, name, starts[step])
		}
	}
	messages := core.(*agent.State).Messages()
	for i, m := range messages {
		for j, c := range m.Calls() {
			if i+1 == len(messages) || len(messages[i+1].Parts) != len(m.Calls()) ||
				messages[i+1].Parts[j].Result == nil || messages[i+1].Parts[j].Result.ID != c.ID {
				w.t.Errorf("call %s has no result in the history", c.ID)
			}
		}
	}
}
