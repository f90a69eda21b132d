package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// The kinds of event and command of the suite's core, in addition to the engine's.
const (
	KindCall   = "call"   // a command for the executor
	KindResult = "result" // the command succeeded
	KindFailed = "failed" // the command is retried after Step.After
	KindGo     = "go"     // the signal that ends the wait of a step
	KindNote   = "note"   // a signal to the run without a step
)

// Step is one step of a [Script].
type Step struct {
	ID         string        `json:"id"`
	Kind       string        `json:"kind,omitempty"` // call (""), decide, wait
	Idempotent bool          `json:"idempotent,omitempty"`
	After      time.Duration `json:"after,omitempty"` // delay of every attempt but the first; duration of a wait
}

// Script is the work of the suite's core: its stages run in order, the steps of a stage concurrently. It is
// the Data of an engine.Spec.
type Script struct {
	Stages [][]Step `json:"stages"`
}

// Spec returns the spec of a run of the script.
func (s Script) Spec(run, session string) engine.Spec {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: the script is a literal of a test
	}
	return engine.Spec{Run: tenon.Run{ID: run, Session: session, Core: "enginetest@1"}, Data: data}
}

// Calls returns a script of n sequential steps.
func Calls(n int, idempotent bool) Script {
	var s Script
	for i := range n {
		s.Stages = append(s.Stages, []Step{{ID: fmt.Sprint(i + 1), Idempotent: idempotent}})
	}
	return s
}

// NewCore builds the suite's core. It is an [engine.NewCore].
func NewCore(_ context.Context, spec engine.Spec) (tenon.Core, error) {
	c := &core{state: map[string]string{}}
	if err := json.Unmarshal(spec.Data, &c.script); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "script: %w", err)
	}
	for _, stage := range c.script.Stages {
		for _, s := range stage {
			c.state[s.ID] = ""
		}
	}
	return c, nil
}

type core struct {
	script Script
	seq    uint64
	state  map[string]string // by step: "", running, again, over
	asked  []string          // open questions
	stage  int
	cancel bool
	failed bool
	ended  bool
}

func (c *core) Apply(e tenon.Event) error {
	if e.Seq != c.seq+1 {
		return tenon.Errorf(tenon.CodeInternal, "event %d follows event %d", e.Seq, c.seq)
	}
	if strings.Contains(e.Step, "/") {
		c.seq = e.Seq
		c.asked = slices.DeleteFunc(c.asked, func(s string) bool { return s == e.Step })
		if e.Kind == tenon.EventQuestion {
			c.asked = append(c.asked, e.Step)
		}
		return nil
	}
	if _, known := c.state[e.Step]; e.Step != "" && !known {
		return tenon.Errorf(tenon.CodeInvalid, "no step %s", e.Step)
	}
	switch e.Kind {
	case tenon.EventRun, KindNote:
	case tenon.EventStarted:
		c.state[e.Step] = "running"
	case tenon.EventInterrupted:
		c.state[e.Step] = ""
	case KindFailed:
		c.state[e.Step] = "again"
	case KindResult, tenon.EventUnknown, tenon.EventExpired, KindGo, "decided":
		c.state[e.Step] = "over"
		c.failed = c.failed || string(e.Data) == `"fail"`
	case tenon.EventCancel:
		c.cancel = true
	case tenon.EventDone:
		c.ended = true
	case tenon.EventRetry:
		c.ended, c.failed = false, false
	default:
		return tenon.Errorf(tenon.CodeInvalid, "an event of kind %s", e.Kind)
	}
	c.seq = e.Seq
	for c.stage < len(c.script.Stages) && c.over(c.script.Stages[c.stage]) {
		c.stage++
	}
	return nil
}

func (c *core) over(stage []Step) bool {
	return !slices.ContainsFunc(stage, func(s Step) bool { return c.state[s.ID] != "over" })
}

func (c *core) Next() []tenon.Command {
	switch {
	case c.ended:
		return nil
	case c.cancel:
		return done(tenon.RunCancelled, tenon.StopCancelled)
	case c.failed:
		return done(tenon.RunFailed, tenon.StopError)
	case c.stage == len(c.script.Stages):
		return done(tenon.RunCompleted, tenon.StopEnd)
	}
	var list []tenon.Command
	for _, s := range c.script.Stages[c.stage] {
		state := c.state[s.ID]
		if state == "over" || state == "running" {
			continue
		}
		cmd := tenon.Command{Step: s.ID, Kind: KindCall, Idempotent: s.Idempotent}
		switch {
		case s.Kind != "":
			cmd.Kind, cmd.Data = s.Kind, json.RawMessage(`{"for":"`+s.ID+`"}`)
			if s.Kind == tenon.CommandWait {
				cmd.After = s.After
			}
		case state == "again":
			cmd.After = s.After
		}
		list = append(list, cmd)
	}
	for _, s := range c.asked {
		list = append(list, tenon.Command{Step: s, Kind: tenon.CommandWait,
			Data: json.RawMessage(`{"for":"` + s + `"}`)})
	}
	return list
}

func done(state tenon.RunState, stop tenon.StopReason) []tenon.Command {
	data, err := json.Marshal(tenon.DoneData{State: state, Stop: stop})
	if err != nil {
		panic(err) // unreachable: two strings always encode
	}
	return []tenon.Command{{Kind: tenon.CommandDone, Data: data}}
}

var _ tenon.Core = (*core)(nil)
