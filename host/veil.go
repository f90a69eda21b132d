package host

import (
	"encoding/json"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// What surfaces get of a journal passes through here: arguments that a redact rule
// names are masked, those of every tool. A person who is asked about a call sees them,
// and so does the engine, which has to run it.

// veil masks the arguments in events. It does not change what it is given.
func (h *Host) veil(events []tenon.Event) []tenon.Event {
	if len(h.redacts) == 0 {
		return events
	}
	out := make([]tenon.Event, len(events))
	for i, e := range events {
		e.Data = policy.MaskArguments(e.Data, h.redacts)
		out[i] = e
	}
	return out
}

// veilWaiting does so in what a run waits for.
func (h *Host) veilWaiting(list []tenon.Waiting) []tenon.Waiting {
	if len(h.redacts) == 0 {
		return list
	}
	out := make([]tenon.Waiting, len(list))
	for i, w := range list {
		w.Data = policy.MaskArguments(w.Data, h.redacts)
		out[i] = w
	}
	return out
}

// veilMessages does so in a conversation. What is a provider's own form of a part goes.
func (h *Host) veilMessages(list []*tenon.Message) []*tenon.Message {
	if len(h.redacts) == 0 {
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
			call.Arguments = policy.Mask(call.Arguments, h.redacts)
			p.Call, p.Raw, p.Wire = &call, nil, ""
		}
		out[i] = c
	}
	return out
}

// masked returns a tool's result without the values of the members that its rules
// name: in structured content, in metadata, and in texts that are JSON as a whole.
func masked(r *tenon.Result, names []string) *tenon.Result {
	if len(names) == 0 {
		return r
	}
	out := &tenon.Result{IsError: r.IsError, Input: r.Input, Structured: policy.Mask(r.Structured, names), Meta: policy.Mask(r.Meta, names)}
	for _, c := range r.Content {
		if clean := policy.MaskText(c.Text, names); clean != c.Text {
			c.Text, c.Raw = clean, nil
		} else if c.Type != tenon.ContentText {
			c = maskedBlock(c, names)
		}
		out.Content = append(out.Content, c)
	}
	return out
}

// maskedBlock masks what stands beside the members that every block has.
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
			if json.Unmarshal(policy.Mask(encode(map[string]json.RawMessage{k: v}), names), &out) == nil {
				fields[k] = out[k]
			}
		}
	}
	clean := tenon.Content{}
	if clean.UnmarshalJSON(encode(fields)) != nil {
		return c
	}
	return clean
}
