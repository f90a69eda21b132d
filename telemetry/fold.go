package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/view"
)

// Ended is an ended step of a run or, if Step is empty, the ended run.
type Ended struct {
	Run  tenon.Run
	Step string
	Name string // exposed name of a tool
	ID   string // the provider's id of a tool call

	Server, Remote string
	Identity       string // of the server; see [agent.Decision]
	Verdict        tenon.Verdict
	By             string
	Cache          bool // the cache was searched for a result
	Hit            bool // the cache contained a result
	Limited        bool // the call had a time limit

	Proposed, Decided, Started, End time.Time

	Usage *tenon.Usage
	Cost  *tenon.USD
	Stop  string
	Error string // error code, or tool_error if the tool reported an error; may be empty

	tried time.Time // time of a failed attempt that may be retried
}

// IsTool reports whether the step is a tool call.
func (e *Ended) IsTool() bool { return tenon.ParseStep(e.Step).IsCall() }

// unknownTool is the name of a tool whose call was proposed in another process.
const unknownTool = "unknown"

// maxRuns bounds the runs with open steps in a fold. If there are more, the fold forgets all of them, and their open
// steps get no durations.
const maxRuns = 16 << 10

// fold keeps the open steps of the runs of this process.
type fold struct {
	mu   sync.Mutex
	runs map[string]map[string]*Ended
}

// add folds the stored events of a run and returns the steps that ended.
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
		step := tenon.ParseStep(e.Step)
		if step.IsQuestion() {
			continue
		}
		if !step.IsCall() && (e.Kind == tenon.EventStarted || e.Kind == tenon.EventDone) {
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
	case run.State != tenon.RunWorking: // the calls that the run waits for stay open
		delete(steps, "")
	}
	return ended
}

// gaveUp ends the calls whose last attempt failed. It is called when the run has continued without a retry.
func gaveUp(steps map[string]*Ended, run tenon.Run) (ended []Ended) {
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if s := steps[step]; !s.tried.IsZero() {
			s.Run, s.End = run, s.tried
			s.Name = cmp.Or(s.Name, unknownTool)
			ended = append(ended, *s)
			delete(steps, step)
		}
	}
	return ended
}

// add folds one event and reports whether it ends the step.
func (s *Ended) add(e tenon.Event) bool {
	switch e.Kind { // their data are not needed
	case tenon.EventRun:
		return false
	case tenon.EventStarted:
		s.Started, s.Error, s.tried = e.Time, "", time.Time{}
		return false
	case agent.EventResult:
		s.resulted(e)
		return true
	}
	data, _ := view.Decode(e) // the journal contains valid data
	switch d := data.(type) {
	case *tenon.ToolCall:
		s.Name, s.ID, s.Proposed = d.Name, d.ID, e.Time
	case *agent.Decision:
		s.Server, s.Remote, s.Identity = d.Server, d.Remote, d.Identity
		s.Cache, s.Limited = d.Cache != nil, d.Timeout > 0
		return s.decided(e, d.Verdict, d.By)
	case *agent.Ruling:
		return s.decided(e, d.Verdict, d.By)
	case *agent.Answered:
		s.Usage, s.Cost, s.Stop = d.Usage, d.Cost, string(d.Stop)
		return !s.IsTool()
	case *agent.Compacted:
		s.Usage, s.Cost, s.Stop = d.Usage, d.Cost, ""
		return !s.IsTool()
	case *agent.Failure:
		return s.failed(e, d)
	case *tenon.DoneData:
		s.Stop = string(d.Stop)
		if d.Error != nil {
			s.Error = string(d.Error.Code)
		}
		s.Started = s.Run.Created
		return true
	}
	return false
}

// decided folds a verdict of the policy or of a person.
func (s *Ended) decided(e tenon.Event, verdict tenon.Verdict, by string) bool {
	s.Verdict, s.By, s.Decided = verdict, by, e.Time
	if verdict != tenon.Deny {
		return false
	}
	s.Error = string(tenon.CodeDenied)
	return s.IsTool()
}

// resulted folds the result of a call. It does not decode the contents, which may be large.
func (s *Ended) resulted(e tenon.Event) {
	s.Hit = string(rawjson.Field(e.Data, "source")) == `"`+agent.SourceCache+`"`
	if string(rawjson.Field(rawjson.Field(e.Data, "result"), "isError")) == "true" {
		s.Error = string(tenon.CodeTool)
	}
}

// failed folds a failed attempt.
func (s *Ended) failed(e tenon.Event, f *agent.Failure) bool {
	s.Error = string(tenon.CodeUnknown)
	if f.Error != nil {
		s.Error = string(f.Error.Code)
	}
	if f.Retry && s.IsTool() {
		s.tried = e.Time
		return false
	}
	return true
}
