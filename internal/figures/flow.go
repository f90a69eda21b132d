package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/figures/durable"
	"github.com/tenonhq/tenon/workflow"
)

// Scale of measureFlow: runs in each round, and steps of each run.
const (
	flowSteps = 100
	flowRuns  = 5
)

// noTool is a tool that does nothing. Its result has the size of the engine's step results in package
// durable.
type noTool struct{}

// Tools implements [tenon.Toolset].
func (noTool) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "nothing", Description: "Does nothing.", Input: json.RawMessage(`{"type":"object"}`),
		Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

// Call implements [tenon.Toolset].
func (noTool) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text(strings.Repeat("x", durable.ResultSize))}}, nil
}

// Workflow steps that do nothing: a text, which has no effect and is therefore stored together with the next
// event, and a call with all rules, which is a step of the engine.
const (
	idleText = `template: "x"`
	idleCall = "tool: nothing, server: idle"
)

// measureFlow compares workflows of sequential empty steps with the same number of steps of only the engine.
// The workflows run on a real host with its journal in a file.
func measureFlow(s *session) error {
	var values, calls, ours, called, alone []float64
	for range s.rounds {
		dir, err := os.MkdirTemp(s.tmp, "flow-")
		if err != nil {
			return err
		}
		flow, err := s.flowRuns(filepath.Join(dir, "texts"), idleText, workflow.EventPlanned)
		if err != nil {
			return err
		}
		calling, err := s.flowRuns(filepath.Join(dir, "calls"), idleCall, agent.EventResult)
		if err != nil {
			return err
		}
		engine, err := durable.Chain(s.ctx, filepath.Join(dir, "engine"), flowSteps, flowRuns+1)
		if err != nil {
			return err
		}
		f, c, e := middle(flow), middle(calling), middle(engine)
		values, ours, alone = append(values, f/e), append(ours, f), append(alone, e)
		calls, called = append(calls, c/e), append(called, c)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	s.add("WF.steps", "a workflow of 100 steps that do nothing, against 100 steps of the engine alone", "ratio", values)
	s.add("WF.calls", "the same of 100 calls of a tool that does nothing, each decided and stored", "ratio", calls)
	s.add("WF.steps.ours", "a workflow of 100 steps that do nothing", "ms", ours)
	s.add("WF.calls.ours", "a workflow of 100 calls that do nothing", "ms", called)
	s.add("WF.steps.engine", "100 steps of the engine alone, started and ended", "ms", alone)
	return nil
}

// middle returns the median in milliseconds. It omits the first value, which includes one-time
// initialization.
func middle(took []time.Duration) float64 {
	var ms []float64
	for _, d := range took[1:] {
		ms = append(ms, d.Seconds()*1e3)
	}
	return median(ms)
}

// flowRuns runs a workflow whose steps end with the given kind of event. It returns the duration of each run.
func (s *session) flowRuns(dir, step, ends string) (took []time.Duration, err error) {
	var text strings.Builder
	text.WriteString("kind: workflow\nversion: 1\nname: idle\ndescription: Does nothing.\nsteps:\n  - {id: s0, " +
		step + "}\n")
	for i := 1; i < flowSteps; i++ {
		fmt.Fprintf(&text, "  - {id: s%d, %s, after: [s%d]}\n", i, step, i-1)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "idle.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	w, pack, err := config.ReadWorkflow(path)
	if err != nil {
		return nil, err
	}
	h, err := host.Open(s.ctx, host.Config{Home: dir, Toolsets: map[string]tenon.Toolset{"idle": noTool{}}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	for range flowRuns + 1 {
		begun := time.Now()
		run, err := h.Workflows().Start(s.ctx, host.WorkflowCall{Workflow: host.Workflow{Workflow: w, Pack: pack}})
		if err != nil {
			return nil, err
		}
		results, done := 0, false
		for e, err := range h.Runs().Events(s.ctx, run.ID, 0) {
			if err != nil {
				return nil, err
			}
			if e.Kind == ends {
				results++
			}
			done = e.Kind == tenon.EventDone
		}
		took = append(took, time.Since(begun))
		if results != flowSteps || !done {
			return nil, fmt.Errorf("the workflow made %d steps of %d", results, flowSteps)
		}
	}
	return took, nil
}
