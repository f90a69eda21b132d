package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/internal/figures/bench"
	"github.com/tenonhq/tenon/policy"
)

// memoryRuns is how many runs one round has.
const memoryRuns = 100

// measureMemory measures the CPU time of one turn, outside model and tool, with a
// journal in memory: the core, the engine that drives it, the checks of
// arguments and policy, and all encoding. The executor below does what package
// host does for the same commands, since a host always has a file.
func measureMemory(s *session) error {
	var values []float64
	for range s.rounds {
		v, err := memoryRound(s.ctx)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	s.add("P5.memory", "CPU of one turn in memory, outside model and tool", "µs", values)
	return nil
}

// memoryRound returns the CPU time of one turn in microseconds.
func memoryRound(ctx context.Context) (_ float64, err error) {
	x, err := newExecutor(ctx)
	if err != nil {
		return 0, err
	}
	st := newMemoryStore()
	e, err := local.New(local.Config{Store: st, NewCore: x.newCore, Do: x.do})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var begun int64
	for i := -memoryRuns / 5; i < memoryRuns; i++ { // the first runs warm up
		if i == 0 {
			if begun = bench.Self().CPU; begun == 0 {
				return 0, errors.New("the CPU time of a process cannot be read on this system")
			}
		}
		id := "run_" + strconv.Itoa(i+memoryRuns)
		spec, err := json.Marshal(agent.Spec{Agent: "default", Question: "What is the weather in London?", Model: "instant",
			Tools: x.snapshot.Digest(), Policy: x.rules.Digest(), MaxTurns: instantTurns + 1, Parallel: 4, Timeout: time.Hour})
		if err != nil {
			return 0, err
		}
		row := tenon.Run{ID: id, Session: "ses_" + id, Core: agent.Version, Agent: "default", Model: "instant"}
		if err := e.Start(ctx, engine.Spec{Run: row, Data: spec}); err != nil {
			return 0, err
		}
		var events []tenon.Event
		for ev, err := range e.Events(ctx, id, 0) {
			if err != nil {
				return 0, err
			}
			events = append(events, ev)
		}
		if err := finished(events); err != nil {
			return 0, err
		}
		st.forget(id)
	}
	return float64(bench.Self().CPU-begun) / 1e3 / float64(memoryRuns*(instantTurns+1)), nil
}

// executor carries out the commands of agents as package host does.
type executor struct {
	snapshot *catalog.Snapshot
	rules    *policy.Rules
	model    tenon.Model
	tools    tenon.Toolset
}

func newExecutor(ctx context.Context) (*executor, error) {
	x := &executor{rules: &policy.Rules{}, model: instantModel{}, tools: instantTools{}}
	tools, err := x.tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	x.snapshot, errs = catalog.Build([]catalog.Source{{Server: instantServer, Trusted: true, Tools: tools}}, nil)
	return x, errors.Join(errs...)
}

func (x *executor) newCore(_ context.Context, spec engine.Spec) (tenon.Core, error) {
	var s agent.Spec
	if err := json.Unmarshal(spec.Data, &s); err != nil {
		return nil, err
	}
	return agent.New(s, nil), nil
}

func (x *executor) do(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	switch a.Kind {
	case agent.CommandModel:
		return x.doModel(ctx, a, emit)
	case agent.CommandDecide:
		return x.doDecide(a)
	case agent.CommandTool:
		return x.doTool(ctx, run, a)
	}
	return nil, fmt.Errorf("a measured run wants %q", a.Kind)
}

func (x *executor) doModel(ctx context.Context, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	p, ok := a.Local.(*agent.Prompt)
	if !ok {
		return nil, errors.New("a model command without its prompt")
	}
	ctx, cancel := context.WithDeadline(ctx, p.Deadline)
	defer cancel()
	var r *tenon.Response
	req := &tenon.Request{System: p.System, Messages: p.Messages, Tools: x.snapshot.Tools(), ToolChoice: p.ToolChoice}
	for d, err := range x.model.Generate(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case d.Response != nil:
			r = d.Response
		default:
			emit(tenon.Event{Step: a.Step, Kind: engine.LiveDelta, Data: encode(engine.Delta{Kind: d.Kind, Text: d.Text})})
		}
	}
	events := []tenon.Event{{Step: a.Step, Kind: agent.EventModel, Data: encode(r)}}
	for i, c := range r.Message.Calls() {
		events = append(events, tenon.Event{Step: a.Step + "." + strconv.Itoa(i), Kind: agent.EventProposed, Data: encode(c)})
	}
	return events, nil
}

func (x *executor) doDecide(a engine.Attempt) ([]tenon.Event, error) {
	var c agent.DecideCommand
	if err := json.Unmarshal(a.Data, &c); err != nil {
		return nil, err
	}
	t, err := x.snapshot.Check(&c.Call)
	if err != nil {
		return nil, err
	}
	o := x.rules.Judge(t)
	d := agent.Decision{Verdict: o.Verdict, By: agent.ByPolicy, Reason: o.Reason, Policy: x.rules.Digest(), Server: t.Server,
		Remote: t.Remote, Arguments: c.Call.Arguments, Idempotent: o.Idempotent, Timeout: o.Timeout}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventDecided, Data: encode(d)}}, nil
}

func (x *executor) doTool(ctx context.Context, run string, a engine.Attempt) ([]tenon.Event, error) {
	var c agent.ToolCommand
	if err := json.Unmarshal(a.Data, &c); err != nil {
		return nil, err
	}
	begun := time.Now()
	r, err := x.tools.Call(ctx, tenon.Call{Tool: c.Remote, Arguments: c.Arguments, Key: run + "/" + a.Step, Input: c.Input})
	if err != nil {
		return nil, err
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult, Data: encode(agent.Outcome{Result: r, Duration: time.Since(begun)})}}, nil
}

// encode writes a value that is known to be JSON.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(strconv.Quote(err.Error())) // the core refuses it, and the run does not finish
	}
	return b
}
