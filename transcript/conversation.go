package transcript

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/exactjson"
	"github.com/tenonhq/tenon/view"
)

// The bounds of a conversation from a file.
const (
	maxConversation = 32 << 20 // bytes
	maxMessages     = 10_000
)

// Read reads messages: a JSON array, or an object with such an array in its member messages, as "tenon sessions show -o
// json" prints it. Messages have tenon's form (see [tenon.Message]) or the form of OpenAI's chat API. Read drops the
// raw parts of providers. Every call must have a result. Errors: invalid, too_large.
func Read(r io.Reader) ([]*tenon.Message, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxConversation+1))
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the conversation cannot be read: %w", err)
	}
	if len(data) > maxConversation {
		return nil, tenon.Errorf(tenon.CodeTooLarge, "the conversation has more than %d bytes", maxConversation)
	}
	var list []foreign
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '{' {
		var whole struct {
			Messages []foreign `json:"messages"`
		}
		err = exactjson.DecodeOpen(data, &whole)
		list = whole.Messages
	} else {
		err = exactjson.DecodeOpen(data, &list)
	}
	switch {
	case err != nil:
		return nil, tenon.Errorf(tenon.CodeInvalid, "the conversation is not a JSON array of messages: %w", err)
	case len(list) > maxMessages:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "the conversation has %d messages; %d is the limit",
			len(list), maxMessages)
	}
	var c conversation
	for i := range list {
		if err := c.add(&list[i]); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "message %d of the conversation: %w", i+1, err)
		}
	}
	return c.messages, c.check()
}

// foreign is a message in tenon's form or in the form of OpenAI's chat API.
type foreign struct {
	Role  string       `json:"role"`
	Parts []tenon.Part `json:"parts"`
	// Partial is explained at [tenon.Message].
	Partial bool `json:"partial"`

	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

// conversation collects and checks messages.
type conversation struct{ messages []*tenon.Message }

func (c *conversation) add(f *foreign) error {
	m := &tenon.Message{Role: tenon.Role(f.Role), Parts: f.Parts, Partial: f.Partial}
	if f.Parts == nil {
		var err error
		if m, err = f.message(); err != nil {
			return err
		}
	}
	var parts []tenon.Part
	for _, p := range m.Parts {
		p.Wire, p.Raw = "", nil
		if p.Type == tenon.PartOpaque || p.Type == tenon.PartText && p.Text == "" {
			continue
		}
		if err := checkPart(m.Role, p); err != nil {
			return err
		}
		parts = append(parts, p)
	}
	last := len(c.messages) - 1
	switch {
	case len(parts) == 0 && m.Role == tenon.RoleAssistant:
		return nil // an empty answer
	case len(parts) == 0:
		return tenon.Errorf(tenon.CodeInvalid, "the message is empty")
	case last < 0 && m.Role == tenon.RoleSystem:
		return tenon.Errorf(tenon.CodeInvalid, "a conversation begins with the user; put the text of a system "+
			"message at its beginning into the agent's instructions")
	case m.Role == tenon.RoleSystem && len(c.messages[last].Calls()) > 0:
		return tenon.Errorf(tenon.CodeInvalid, "a system message is between calls and their results")
	case last < 0 && m.Role != tenon.RoleUser:
		return tenon.Errorf(tenon.CodeInvalid, "a conversation begins with the user, not with role '%s'", m.Role)
	case m.Role == tenon.RoleTool && c.messages[last].Role == tenon.RoleTool: // one message for each result
		c.messages[last].Parts = append(c.messages[last].Parts, parts...)
		return nil
	}
	c.messages = append(c.messages, &tenon.Message{Role: m.Role, Parts: parts, Partial: m.Partial})
	return nil
}

// checkPart returns an error if a message of the role cannot contain the part.
func checkPart(role tenon.Role, p tenon.Part) error {
	fits := false
	switch role {
	case tenon.RoleUser:
		fits = p.Type == tenon.PartText || p.Type == tenon.PartImage || p.Type == tenon.PartFile
	case tenon.RoleAssistant:
		fits = p.Type == tenon.PartText || p.Type == tenon.PartThinking || p.Type == tenon.PartCall ||
			p.Type == tenon.PartImage || p.Type == tenon.PartFile
	case tenon.RoleTool:
		fits = p.Type == tenon.PartResult
	case tenon.RoleSystem:
		fits = p.Type == tenon.PartText
	default:
		return tenon.Errorf(tenon.CodeInvalid, "there is no role '%s'; "+
			"a history consists of user, assistant, tool and system messages", role)
	}
	switch {
	case !fits:
		return tenon.Errorf(tenon.CodeInvalid, "a message of role '%s' cannot have a part of type '%s'", role,
			p.Type)
	case p.Type == tenon.PartCall && (p.Call == nil || p.Call.Name == ""), p.Type == tenon.PartResult &&
		p.Result == nil:
		return tenon.Errorf(tenon.CodeInvalid, "a part of type '%s' does not say which tool", p.Type)
	case p.Type == tenon.PartCall && len(p.Call.Arguments) > 0 && !isObject(p.Call.Arguments):
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of the call of '%s' are not a JSON object", p.Call.Name)
	case isRemote(role, p):
	case p.Type == tenon.PartImage, p.Type == tenon.PartFile:
		if _, err := base64.StdEncoding.DecodeString(p.Data); err != nil || p.Data == "" || p.MimeType == "" {
			return tenon.Errorf(tenon.CodeInvalid, "a part of type '%s' needs mime_type and its bytes as base64",
				p.Type)
		}
	}
	return nil
}

// isRemote reports whether a part of a user message is an image or file that the provider itself reads.
func isRemote(role tenon.Role, p tenon.Part) bool {
	scheme, rest, ok := strings.Cut(p.URI, ":")
	return ok && rest != "" && p.Data == "" && role == tenon.RoleUser &&
		(p.Type == tenon.PartImage || p.Type == tenon.PartFile) &&
		slices.Contains([]string{"https", "http", "gs", "s3", "file-id"}, scheme)
}

func isObject(b json.RawMessage) bool {
	b = bytes.TrimSpace(b)
	return json.Valid(b) && len(b) > 0 && b[0] == '{'
}

// message converts a message of OpenAI's chat API.
func (f *foreign) message() (*tenon.Message, error) {
	m := &tenon.Message{Role: tenon.Role(f.Role)}
	if f.Role == "developer" { // OpenAI's newer word
		m.Role = tenon.RoleSystem
	}
	parts, err := contentParts(f.Content)
	if err != nil {
		return nil, err
	}
	if m.Role == tenon.RoleTool {
		r := &tenon.ToolResult{ID: f.ToolCallID, Content: []tenon.Content{}}
		for _, p := range parts {
			r.Content = append(r.Content, tenon.Text(p.Text))
		}
		m.Parts = []tenon.Part{{Type: tenon.PartResult, Result: r}}
		return m, nil
	}
	m.Parts = parts
	for _, t := range f.ToolCalls {
		m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartCall,
			Call: &tenon.ToolCall{ID: t.ID, Name: t.Function.Name, Arguments: json.RawMessage(t.Function.Arguments)}})
	}
	return m, nil
}

// contentParts reads a text, or a list of texts and images.
func contentParts(b json.RawMessage) ([]tenon.Part, error) {
	var text *string
	if len(b) == 0 || json.Unmarshal(b, &text) == nil {
		if text == nil {
			return nil, nil
		}
		return []tenon.Part{{Type: tenon.PartText, Text: *text}}, nil
	}
	var list []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := exactjson.DecodeOpen(b, &list); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "its content is neither a text nor a list of parts: %w", err)
	}
	var parts []tenon.Part
	for _, x := range list {
		switch x.Type {
		case "text", "input_text", "output_text":
			parts = append(parts, tenon.Part{Type: tenon.PartText, Text: x.Text})
		case "image_url":
			if strings.HasPrefix(x.ImageURL.URL, "https://") {
				parts = append(parts, tenon.Part{Type: tenon.PartImage, URI: x.ImageURL.URL})
				continue
			}
			mime, data, ok := strings.Cut(strings.TrimPrefix(x.ImageURL.URL, "data:"), ";base64,")
			if !ok {
				return nil, tenon.Errorf(tenon.CodeInvalid, "an image must be a data: URL or an https URL")
			}
			parts = append(parts, tenon.Part{Type: tenon.PartImage, MimeType: mime, Data: data})
		default:
			return nil, tenon.Errorf(tenon.CodeInvalid, "a part of type '%s' is not known", x.Type)
		}
	}
	return parts, nil
}

// check returns an error if a call does not have exactly one result in the next message. It sorts the results in the
// order of their calls, and gives them the names of their calls.
func (c *conversation) check() error {
	for i, m := range c.messages {
		calls := m.Calls()
		var results []tenon.Part
		if i+1 < len(c.messages) && c.messages[i+1].Role == tenon.RoleTool {
			results = c.messages[i+1].Parts
		}
		if m.Role != tenon.RoleTool && len(results) != len(calls) {
			return tenon.Errorf(tenon.CodeInvalid,
				"message %d of the conversation calls %d tools and is followed by %d results; "+
					"each call needs one", i+1, len(calls), len(results))
		}
		byID := map[string]*tenon.ToolResult{}
		for _, p := range results {
			byID[p.Result.ID] = p.Result
		}
		for j, call := range calls {
			r := results[j].Result
			if x := byID[call.ID]; x != nil && len(byID) == len(calls) {
				r = x
			} else if call.ID != r.ID {
				return tenon.Errorf(tenon.CodeInvalid,
					"message %d of the conversation calls '%s' with the id '%s', which has no result",
					i+1, call.Name, call.ID)
			}
			named := *r
			named.Name = call.Name
			if named.Content == nil {
				named.Content = []tenon.Content{}
			}
			c.messages[i+1].Parts[j].Result = &named
		}
	}
	return nil
}

// Conversation returns the messages up to a run's last event in the form that [Read] accepts. Tools have their names on
// their servers, the raw parts of providers are omitted, and secrets are masked. Calls that have not ended are omitted.
// Errors: not_found, invalid, store.
func (t *Transcripts) Conversation(ctx context.Context, run string) ([]*tenon.Message, error) {
	list, err := t.MessagesUpTo(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	if last := len(list) - 1; last > 0 && len(list[last].unended) > 0 {
		list[last-1].Message = without(list[last-1].Message, tenon.PartCall, list[last].unended)
		list = withoutUnended(list)
	}
	links, err := t.links(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	given, names := map[string][]*tenon.Message{}, map[string]map[string]string{}
	for _, l := range links {
		given[l.run], names[l.run] = l.spec.History, map[string]string{}
		for _, c := range view.Of(l.events).Calls() {
			if c.Remote != "" {
				names[l.run][c.Name] = c.Remote
			}
		}
	}
	out := make([]*tenon.Message, 0, len(list))
	for _, said := range list {
		m := said.Message
		if first := given[said.Run]; len(first) > 0 {
			m, given[said.Run] = first[0], first[1:]
		}
		if m = agent.Renamed(m, names[said.Run]).Plain(); len(m.Parts) > 0 {
			out = append(out, m)
		}
	}
	b := t.cfg.Redactor.Bytes(tenon.EventData(out))
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"the conversation of run %s contains a configured secret in a place where it cannot be masked", run)
	}
	return out, nil
}
