package policy

import (
	"slices"

	"github.com/tenonhq/tenon"
)

// Surfaces receive a journal through these functions, which mask the arguments that redact rules name, for every tool.
// Unmasked arguments reach only the engine, which runs the call, and the person who approves it.

// MaskEvents returns events with masked arguments. It does not change its argument.
func MaskEvents(events []tenon.Event, names []string) []tenon.Event {
	if len(names) == 0 {
		return events
	}
	out := make([]tenon.Event, len(events))
	for i, e := range events {
		e.Data, e.Local = MaskArguments(e.Data, names), nil
		out[i] = e
	}
	return out
}

// MaskWaiting returns a run's waits with masked arguments.
func MaskWaiting(list []tenon.Waiting, names []string) []tenon.Waiting {
	if len(names) == 0 {
		return list
	}
	out := make([]tenon.Waiting, len(list))
	for i, w := range list {
		w.Data = MaskArguments(w.Data, names)
		out[i] = w
	}
	return out
}

// MaskMessages returns a conversation with masked arguments. It drops the provider's own form of a call that it
// masks.
func MaskMessages(list []*tenon.Message, names []string) []*tenon.Message {
	if len(names) == 0 {
		return list
	}
	out := make([]*tenon.Message, len(list))
	for i, m := range list {
		c := &tenon.Message{Role: m.Role, By: m.By, Partial: m.Partial, Parts: slices.Clone(m.Parts)}
		for j := range c.Parts {
			p := &c.Parts[j]
			if p.Call == nil {
				continue
			}
			call := *p.Call
			call.Arguments = Mask(call.Arguments, names)
			p.Call, p.Raw, p.Wire = &call, nil, ""
		}
		out[i] = c
	}
	return out
}
