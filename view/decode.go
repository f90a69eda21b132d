package view

import (
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/workflow"
)

// Decode decodes the data of an event, stored or live, into a pointer to its type: [engine.Spec] for the first
// event, [engine.Delta], a []tenon.Waiting, [workflow.Planned], or a type that [agent.Payload] names. For a kind
// without data, or an unknown kind, it returns nil. If the data cannot be read, it returns the zero value of the
// type and an error with code store.
func Decode(e tenon.Event) (any, error) {
	switch e.Kind {
	case tenon.EventRun:
		return decode[engine.Spec](e)
	case engine.LiveDelta, engine.LiveReset:
		return decode[engine.Delta](e)
	case engine.EventWaiting:
		return decode[[]tenon.Waiting](e)
	case workflow.EventPlanned:
		return decode[workflow.Planned](e)
	}
	return agent.Payload(e)
}

// As decodes the data of an event whose type the caller knows from its kind. It returns the zero value if the data
// cannot be read or has another type.
func As[T any](e tenon.Event) T {
	v, _ := Try[T](e)
	return v
}

// Try is [As] for callers that handle errors. The error has code store if the data cannot be read, and code internal if
// events of this kind have another type.
func Try[T any](e tenon.Event) (T, error) {
	var zero T
	data, err := Decode(e)
	if err != nil {
		return zero, err
	}
	v, ok := data.(*T)
	if !ok {
		return zero, tenon.Errorf(tenon.CodeInternal, "the data of an event %s is a %T, not a %T", e.Kind, data, zero)
	}
	return *v, nil
}

// Spec decodes the input of a run's core from the first event of its journal; see [SpecOf].
func Spec[T any](e tenon.Event) (tenon.Run, T, error) { return FirstSpec[T](e.Run, []tenon.Event{e}) }

// FirstSpec is [Spec] for a journal. It decodes the first of events. Errors: store, also if there are no events.
func FirstSpec[T any](run string, events []tenon.Event) (tenon.Run, T, error) {
	spec, err := engine.ReadSpec(run, events)
	if err != nil {
		return tenon.Run{}, *new(T), err
	}
	in, err := SpecOf[T](spec)
	return spec.Run, in, err
}

// SpecOf decodes the input of a run's core. T is the type of that core's spec, or a struct with some of its fields. The
// types are [agent.Spec], [agent.DirectSpec] and [workflow.Spec]. Errors: store.
func SpecOf[T any](spec engine.Spec) (T, error) {
	var in T
	if err := json.Unmarshal(spec.Data, &in); err != nil {
		return in, tenon.Errorf(tenon.CodeStore, "run %s: the spec cannot be read: %w", spec.Run.ID, err)
	}
	return in, nil
}

func decode[T any](e tenon.Event) (any, error) {
	v := new(T)
	if len(e.Data) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return new(T), tenon.Errorf(tenon.CodeStore, "run %s: event %d (%s) cannot be read: %w", e.Run, e.Seq, e.Kind,
			err)
	}
	return v, nil
}

// Asking decodes the request of a waiting run. It returns false if the data is encrypted or cannot be read.
func Asking(w tenon.Waiting) (agent.Asking, bool) {
	var a agent.Asking
	err := json.Unmarshal(w.Data, &a)
	return a, err == nil
}

// Ended decodes the last event of a run, and the summary of its core. For an agent's run, the summary has no Outputs.
// If the run ended without its core, the summary is empty.
func Ended(e tenon.Event) (tenon.DoneData, workflow.Summary, error) {
	var sum workflow.Summary
	done, err := Try[tenon.DoneData](e)
	if err == nil && len(done.Data) > 0 {
		_ = json.Unmarshal(done.Data, &sum) // another core has no such summary
	}
	return done, sum, err
}

// Spent returns the usage and cost of the model call or compaction that an event ends. Both are zero for other events.
// The cost is zero if no price is known.
func Spent(e tenon.Event) (tenon.Usage, tenon.USD) {
	usage, cost, _ := spentOf(e)
	return usage, cost
}

// spentOf is Spent. It also reports whether the tokens are known.
func spentOf(e tenon.Event) (usage tenon.Usage, cost tenon.USD, known bool) {
	var u *tenon.Usage
	var c *tenon.USD
	data, err := Decode(e)
	if err != nil {
		return usage, 0, false
	}
	switch d := data.(type) {
	case *agent.Answered:
		u, c = d.Usage, d.Cost
	case *agent.Compacted:
		u, c = d.Usage, d.Cost
	}
	if u != nil {
		usage = *u
	}
	if c != nil {
		cost = *c
	}
	return usage, cost, u != nil
}
