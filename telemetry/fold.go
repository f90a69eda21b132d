package telemetry

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// Ended is a step of a run that has come to its end, or, without Step, the run.
type Ended struct {
	Run  tenon.Run
	Step string
	Name string // of a tool, as the model sees it
	ID   string // the provider's, of a tool call

	Server, Remote string
	Verdict        tenon.Verdict
	By             string
	Cache          bool // a result of an equal call was looked for
	Hit            bool // and found
	Limited        bool // there was a limit of time

	Proposed, Decided, Started, End time.Time

	Usage *tenon.Usage
	Cost  *tenon.USD
	Stop  string
	Error string // its code; tool_error where the tool said so; "" for none

	tried time.Time // when an attempt failed that another one may follow
}

// IsTool reports whether it is a tool call.
func (e *Ended) IsTool() bool { return strings.Contains(e.Step, ".") }

// unknownTool is the name of a tool whose call was proposed in another process.
const unknownTool = "unknown"

// maxRuns bounds the runs that a fold keeps steps of. One that is forgotten has no
// durations for what was under way.
const maxRuns = 16 << 10

// fold keeps what has begun in the runs of this process.
type fold struct {
	mu   sync.Mutex
	runs map[string]map[string]*Ended
}

// add folds the stored events of a run and returns what they end.
func (f *fold) add(run tenon.Run, events []tenon.Event) (ended []Ended) {
	f.mu.Lock()
	defer f.mu.Unlock()
	steps := f.runs[run.ID]
	if steps == nil {
		if len(f.runs) >= maxRuns {
			clear(f.runs)
		}
		steps = map[string]*Ended{}
		f.runs[run.ID] = steps
	}
	for _, e := range events {
		if strings.Contains(e.Step, "/") {
			continue // a question within a call
		}
		if !strings.Contains(e.Step, ".") && (e.Kind == tenon.EventStarted || e.Kind == tenon.EventDone) {
			ended = append(ended, gaveUp(steps, run)...)
		}
		s := steps[e.Step]
		if s == nil {
			s = &Ended{Run: run, Step: e.Step}
			steps[e.Step] = s
		}
		if s.add(e) {
			s.Run, s.End = run, e.Time
			if s.IsTool() && s.Name == "" {
				s.Name = unknownTool
			}
			ended = append(ended, *s)
			delete(steps, e.Step)
		}
	}
	switch {
	case run.State.Ended():
		delete(f.runs, run.ID)
	case run.State != tenon.RunWorking: // it goes on with the calls that it waits for
		delete(steps, "")
	}
	return ended
}

// gaveUp ends the calls whose last attempt failed: the run goes on without another one.
func gaveUp(steps map[string]*Ended, run tenon.Run) (ended []Ended) {
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if s := steps[step]; !s.tried.IsZero() {
			s.Run, s.End = run, s.tried
			if s.Name == "" {
				s.Name = unknownTool
			}
			ended = append(ended, *s)
			delete(steps, step)
		}
	}
	return ended
}

// add folds one event and reports whether the step has ended with it.
func (s *Ended) add(e tenon.Event) bool {
	switch e.Kind {
	case agent.EventProposed:
		var c tenon.ToolCall
		_ = json.Unmarshal(e.Data, &c) // what the journal holds is one
		s.Name, s.ID, s.Proposed = c.Name, c.ID, e.Time
	case agent.EventDecided:
		var d agent.Decision
		_ = json.Unmarshal(e.Data, &d)
		s.Server, s.Remote, s.Verdict, s.By, s.Decided = d.Server, d.Remote, d.Verdict, d.By, e.Time
		s.Cache, s.Limited = d.Cache != nil, d.Timeout > 0
		if d.Verdict == tenon.Deny {
			s.Error = string(tenon.CodeDenied)
		}
		return d.Verdict == tenon.Deny && s.IsTool()
	case agent.EventDecision:
		var r agent.Ruling
		_ = json.Unmarshal(e.Data, &r)
		s.Verdict, s.By, s.Decided = r.Verdict, r.By, e.Time
		if r.Verdict == tenon.Deny {
			s.Error = string(tenon.CodeDenied)
		}
		return r.Verdict == tenon.Deny && s.IsTool()
	case tenon.EventStarted:
		s.Started, s.Error, s.tried = e.Time, "", time.Time{}
	case agent.EventModel, agent.EventCompacted:
		var r struct {
			Usage *tenon.Usage `json:"usage"`
			Cost  *tenon.USD   `json:"cost"`
			Stop  string       `json:"stop"`
		}
		_ = json.Unmarshal(e.Data, &r)
		s.Usage, s.Cost, s.Stop = r.Usage, r.Cost, r.Stop
		return !s.IsTool()
	case agent.EventResult:
		var o struct {
			Result struct {
				IsError bool `json:"isError"`
			} `json:"result"`
			Source string `json:"source"`
		}
		_ = json.Unmarshal(e.Data, &o)
		if s.Hit = o.Source == agent.SourceCache; o.Result.IsError {
			s.Error = string(tenon.CodeTool)
		}
		return true
	case agent.EventFailed, tenon.EventUnknown:
		var f agent.Failure
		_ = json.Unmarshal(e.Data, &f)
		s.Error = string(tenon.CodeUnknown)
		if f.Error != nil {
			s.Error = string(f.Error.Code)
		}
		if f.Retry && s.IsTool() {
			s.tried = e.Time
			return false
		}
		return true
	case tenon.EventDone:
		var d tenon.DoneData
		_ = json.Unmarshal(e.Data, &d)
		if s.Stop = string(d.Stop); d.Error != nil {
			s.Error = string(d.Error.Code)
		}
		s.Started = s.Run.Created
		return true
	}
	return false
}
