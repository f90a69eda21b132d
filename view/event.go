package view

import (
	"iter"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
)

// Event is an event of a run whose data is read as a Go value with [Event.Value]. The embedded event has the run,
// the step, the time and the stored bytes.
type Event struct {
	tenon.Event
}

// Value returns the data of the event as a pointer to a Go type, for a type switch:
//
//	switch d := e.Value().(type) {
//	case *view.Text:
//		fmt.Print(d.Text)
//	case *view.ToolCall:
//		fmt.Println(d.Name, string(d.Arguments))
//	case *view.Done:
//		fmt.Println(d.State)
//	}
//
// The types are [Text], [Thinking], [Calling], [Reset], [Waiting], [Child], and the types that [Decode] returns; the
// most useful of them have names in this package. Value returns nil for a kind without data and for an unknown kind.
// If the data cannot be read, it returns the zero value of the type; Decode returns the error.
func (e Event) Value() any {
	v, _ := Decode(e.Event)
	switch d := v.(type) {
	case *engine.Delta:
		return live(e.Kind, d)
	case *[]tenon.Waiting:
		return &Waiting{*d}
	case *tenon.Event:
		return &Child{Event{*d}}
	}
	return v
}

// live returns the typed value of a live piece of an answer, or nil for an unknown kind.
func live(kind string, d *engine.Delta) any {
	switch {
	case kind == engine.LiveReset:
		return &Reset{d.Text}
	case d.Kind == tenon.DeltaText:
		return &Text{d.Text}
	case d.Kind == tenon.DeltaThinking:
		return &Thinking{d.Text}
	case d.Kind == tenon.DeltaCall:
		return &Calling{d.Text}
	}
	return nil
}

// Typed returns the events of a sequence with typed values: view.Typed(h.Runs().Events(ctx, run, 0)).
func Typed(events iter.Seq2[tenon.Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range events {
			if !yield(Event{e}, err) {
				return
			}
		}
	}
}

// Text is a piece of a model's answer while it arrives.
type Text struct{ Text string }

// Thinking is a piece of a model's reasoning while it arrives.
type Thinking struct{ Text string }

// Calling reports that a model begins to write a tool call. The complete call follows as a [ToolCall].
type Calling struct{ Tool string }

// Reset reports that the pieces of the step so far are void, because the model begins its answer again.
type Reset struct{ Reason string }

// Waiting reports that the run waits for decisions or answers. It is the last event of a stream.
type Waiting struct{ For []tenon.Waiting }

// Child is an event of a run that this run called. The called run is a run of another agent or of a workflow.
type Child struct{ Event }

// The types of values that other packages declare. Each is the value of one kind of event.
type (
	// Answered is a complete answer of a model, with its usage.
	Answered = agent.Answered
	// ToolCall is a call that a model proposes.
	ToolCall = tenon.ToolCall
	// Decision is the verdict of the rules about a call.
	Decision = agent.Decision
	// Ruling is the verdict of a person or a program about a call.
	Ruling = agent.Ruling
	// Outcome is the end of a call with a result.
	Outcome = agent.Outcome
	// Failure is a failed attempt of a step.
	Failure = agent.Failure
	// Progress is a progress notification of a tool.
	Progress = tenon.Progress
	// Done is the end of the run.
	Done = tenon.DoneData
)
