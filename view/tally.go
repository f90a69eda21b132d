package view

import (
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// Tally is the summary of a run for statistics: its row and the counts of its calls. A store keeps one for each run, so
// that statistics do not fold journals.
type Tally struct {
	Agent     string
	Model     string
	Session   string
	Title     string
	Principal tenon.Principal // the principal in [tenon.Run.Owner]
	Called    bool            // another run called this run
	Ended     bool
	Created   time.Time
	Updated   time.Time
	Tools     []ToolTally // in the order of their first calls
	Models    ModelTally
}

// ToolTally counts the calls of one tool under one name.
type ToolTally struct {
	Name     string // the name that the model saw
	Server   string
	Identity string // see [Call.Identity]
	Remote   string
	Calls    int
	Errors   int
	Denied   int
	Cached   int
	Unknown  int
	Bytes    int64 // bytes of all results
	Cost     tenon.USD
	Took     []int64 // milliseconds of the calls that ended and were not cached
}

// ModelTally counts the model calls of a run.
type ModelTally struct {
	Calls  int
	Errors int
	// Unmetered counts the successful calls whose provider reported no tokens. Tallies of earlier versions lack it.
	Unmetered int
	Input     int // tokens
	Output    int
	// CacheRead and CacheWrite are the input tokens that were read from and written to a provider's cache. Tallies of
	// earlier versions do not have them.
	CacheRead, CacheWrite int
	Cost                  tenon.USD
	Took                  []int64 // milliseconds of the calls that succeeded
}

// TallyOf summarizes a run from its row and all its events.
func TallyOf(r tenon.Run, events []tenon.Event) Tally {
	t := Tally{Agent: r.Agent, Model: r.Model, Session: r.Session, Title: r.Title, Principal: r.Owner(),
		Called: r.Caller != "", Ended: r.State.Ended(), Created: r.Created, Updated: r.Updated}
	type key struct{ name, server, identity, remote string }
	at := map[key]int{}
	for _, call := range Of(events).Calls() {
		k := key{call.Name, call.Server, call.Identity, call.Remote}
		i, ok := at[k]
		if !ok {
			i = len(t.Tools)
			at[k] = i
			t.Tools = append(t.Tools, ToolTally{Name: call.Name, Server: call.Server, Identity: call.Identity,
				Remote: call.Remote})
		}
		t.Tools[i].add(call)
	}
	t.Models.add(events)
	return t
}

// add counts a tool call.
func (t *ToolTally) add(c Call) {
	t.Calls++
	t.Cost += c.Cost
	if c.Cached {
		t.Cached++
	}
	if c.Result != nil {
		t.Bytes += int64(len(tenon.EventData(c.Result)))
	}
	switch c.Outcome {
	case CallDenied:
		t.Denied++
	case CallUnknown:
		t.Unknown++
	case CallFailed, CallInvalid:
		t.Errors++
	case CallDone:
		if !c.Success {
			t.Errors++
		}
		if !c.Cached {
			t.Took = append(t.Took, c.Millis)
		}
	}
}

// add counts the model calls of a journal.
func (t *ModelTally) add(events []tenon.Event) {
	started := map[string]time.Time{}
	for _, e := range events {
		if e.Kind == tenon.EventStarted {
			started[e.Step] = e.Time
		}
		failed := e.Kind == agent.EventFailed && tenon.ParseStep(e.Step).Call == ""
		if e.Kind != agent.EventModel && e.Kind != agent.EventCompacted && !failed {
			continue
		}
		t.Calls++
		if failed {
			t.Errors++
		} else if began, ok := started[e.Step]; ok {
			t.Took = append(t.Took, e.Time.Sub(began).Milliseconds())
		}
		usage, cost, known := spentOf(e)
		if !known && !failed {
			t.Unmetered++
		}
		t.Input += usage.Input
		t.Output += usage.Output
		t.CacheRead += usage.CacheRead
		t.CacheWrite += usage.CacheWrite
		t.Cost += cost
	}
}
