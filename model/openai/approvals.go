package openai

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// The Responses API can call tools of MCP servers by itself (connectors). Before a call it asks for an approval: the
// answer ends with an item that describes the call, and the next request contains the approval. tenon represents the
// item as a call with a [tenon.Connector], about which the rules decide, and the result of the call as the approval.
// The prefix of the call id distinguishes it from a function call.
const (
	approvalItem   = "mcp_approval_request"
	approvalPrefix = "approval_"
	// maxReason bounds the reason of a refusal, in characters.
	maxReason = 1000
)

// isApproval reports whether the id belongs to a request for an approval.
func isApproval(id string) bool { return strings.HasPrefix(id, approvalPrefix) }

// connectorCall returns the name of the call for an item. It consists of the connector's label and the tool's name.
func connectorCall(item []byte) string {
	label, tool := rawjson.String(rawjson.Field(item, "server_label")), rawjson.String(rawjson.Field(item, "name"))
	if tool == "" {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_' // not every API accepts other characters in the names of calls
	}, label+"__"+tool)
}

// approval returns an item as a call. An item without an id cannot be answered and is omitted.
func (a *output) approval(it *item) *tenon.Part {
	var id, label, tool, args string
	for k, v := range rawjson.Fields(it.raw) {
		switch string(k) {
		case "id":
			id = rawjson.String(v)
		case "server_label":
			label = rawjson.String(v)
		case "name":
			tool = rawjson.String(v)
		case "arguments":
			args = rawjson.String(v)
		}
	}
	if id == "" || tool == "" {
		a.warn("a request for an approval without id or name is omitted")
		return nil
	}
	c := &tenon.ToolCall{ID: approvalPrefix + id, Name: it.name, Connector: &tenon.Connector{Name: label, Tool: tool}}
	if a.connector != nil {
		c.Connector = a.connector(label, tool)
	}
	model.SetArguments(c, args)
	return &tenon.Part{Type: tenon.PartCall, Call: c, Wire: model.WireResponses, Raw: it.raw}
}

// withdraw returns the messages with a refusal in place of each approval that was given for another address than the
// request now declares for its connector. The entry may have changed since then, and an approval is only valid for the
// address that a person saw. The model may call the tool again, so that the rules decide again.
func withdraw(messages []*tenon.Message, connector func(label, tool string) *tenon.Connector) []*tenon.Message {
	moved, out := map[string]string{}, messages
	for i, msg := range messages {
		if msg.Role == tenon.RoleAssistant {
			clear(moved) // ids of calls may repeat
		}
		var parts []tenon.Part
		for j := range msg.Parts {
			p := &msg.Parts[j]
			switch {
			case p.Call != nil && p.Call.Connector != nil:
				now := connector(p.Call.Connector.Name, p.Call.Connector.Tool).URL
				if now != "" && now != p.Call.Connector.URL { // without an address nothing is declared
					moved[p.Call.ID] = "The address of '" + p.Call.Connector.Name + "' changed after this call was " +
						"allowed, so the call was not made. Call the tool again to ask for the new address."
				}
			case p.Result != nil && !p.Result.IsError && moved[p.Result.ID] != "":
				if parts == nil {
					parts = slices.Clone(msg.Parts)
				}
				r := *p.Result
				r.IsError, r.Content = true, []tenon.Content{tenon.Text(moved[r.ID])}
				parts[j].Result = &r
			}
		}
		if parts != nil {
			if &out[0] == &messages[0] {
				out = slices.Clone(messages)
			}
			out[i] = &tenon.Message{Role: msg.Role, By: msg.By, Parts: parts}
		}
	}
	return out
}

// appendApprovalRequest appends the item for a call of a connector. It is rebuilt if the original item is not
// available.
func appendApprovalRequest(dst []byte, p *tenon.Part, own bool) []byte {
	if own {
		return append(append(dst, ','), p.Raw...)
	}
	c := p.Call
	dst = append(dst, `,{"type":"`+approvalItem+`","id":`...)
	dst = rawjson.AppendString(dst, strings.TrimPrefix(c.ID, approvalPrefix))
	dst = append(dst, `,"server_label":`...)
	dst = rawjson.AppendString(dst, c.Connector.Name)
	dst = append(dst, `,"name":`...)
	dst = rawjson.AppendString(dst, c.Connector.Tool)
	dst = append(dst, `,"arguments":`...)
	dst = rawjson.AppendString(dst, string(model.AppendArguments(nil, c)))
	return append(dst, '}')
}

// appendApproval appends the answer to a request for an approval. A call that ended in an error is not approved, and
// the model sees why.
func appendApproval(dst []byte, r *tenon.ToolResult) []byte {
	dst = append(dst, `,{"type":"mcp_approval_response","approval_request_id":`...)
	dst = rawjson.AppendString(dst, strings.TrimPrefix(r.ID, approvalPrefix))
	if !r.IsError {
		return append(dst, `,"approve":true}`...)
	}
	dst = append(dst, `,"approve":false,"reason":`...)
	return append(rawjson.AppendString(dst, tenon.Shorten(model.ResultText(r), maxReason)), '}')
}
