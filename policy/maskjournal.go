package policy

import (
	"encoding/json"
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
		e.Data = MaskArguments(e.Data, names)
		out[i] = e
	}
	return out
}

// MaskWaiting returns what a run waits for, with masked arguments.
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

// MaskMessages returns a conversation with masked arguments. A masked call loses its provider's own form.
func MaskMessages(list []*tenon.Message, names []string) []*tenon.Message {
	if len(names) == 0 {
		return list
	}
	out := make([]*tenon.Message, len(list))
	for i, m := range list {
		c := &tenon.Message{Role: m.Role, By: m.By, Parts: slices.Clone(m.Parts)}
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

// MaskResult returns a tool's result with masked values of the named members: in structured content, in metadata, and
// in texts that are JSON documents.
func MaskResult(r *tenon.Result, names []string) *tenon.Result {
	if len(names) == 0 {
		return r
	}
	out := &tenon.Result{IsError: r.IsError, Input: r.Input, Structured: Mask(r.Structured, names),
		Meta: Mask(r.Meta, names)}
	for _, c := range r.Content {
		if clean := MaskText(c.Text, names); clean != c.Text {
			c.Text, c.Raw = clean, nil
		} else if c.Type != tenon.ContentText {
			c = maskedBlock(c, names)
		}
		out.Content = append(out.Content, c)
	}
	return out
}

// maskedBlock masks the members that not every block has.
func maskedBlock(c tenon.Content, names []string) tenon.Content {
	if len(c.Raw) == 0 {
		return c
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(c.Raw, &fields) != nil {
		return c
	}
	for k, v := range fields {
		switch k {
		case "type", "text", "data", "mimeType", "uri", "name", "resource":
		default:
			var out map[string]json.RawMessage
			if json.Unmarshal(Mask(tenon.EventData(map[string]json.RawMessage{k: v}), names), &out) == nil {
				fields[k] = out[k]
			}
		}
	}
	clean := tenon.Content{}
	if clean.UnmarshalJSON(tenon.EventData(fields)) != nil {
		return c
	}
	return clean
}
