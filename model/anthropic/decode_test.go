package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// decodeMessage decodes a message of this wire format. Its content is a string or a list of blocks.
// A user message with tool results becomes a message of role tool. Blocks without a meaning on
// other wires become opaque parts. Errors have code invalid.
func decodeMessage(data []byte) (*tenon.Message, error) {
	var m struct {
		Role    tenon.Role      `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "anthropic message: %w", err)
	}
	if m.Role != tenon.RoleUser && m.Role != tenon.RoleAssistant {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"anthropic message: role '%s' is neither user nor assistant", m.Role)
	}
	msg := &tenon.Message{Role: m.Role}
	switch {
	case len(m.Content) > 0 && m.Content[0] == '"':
		msg.Parts = []tenon.Part{{Type: tenon.PartText, Text: rawjson.String(m.Content)}}
	case len(m.Content) > 0 && m.Content[0] == '[':
		for raw := range rawjson.Elements(m.Content) {
			b := newBlock(raw)
			if b == nil {
				return nil, tenon.Errorf(tenon.CodeInvalid, "anthropic message: a block has no type")
			}
			p := b.decode()
			if p.Type == tenon.PartResult {
				msg.Role = tenon.RoleTool
			}
			msg.Parts = append(msg.Parts, p)
		}
	default:
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"anthropic message: content is neither a string nor a list of blocks")
	}
	return msg, nil
}

// decode returns the part for a complete block.
func (b *block) decode() tenon.Part {
	switch b.kind {
	case "image":
		if s := rawjson.Field(b.start, "source"); rawjson.String(rawjson.Field(s, "type")) == "base64" {
			mime, data := rawjson.Field(s, "media_type"), rawjson.Field(s, "data")
			return tenon.Part{Type: tenon.PartImage, MimeType: rawjson.String(mime), Data: rawjson.String(data)}
		}
	case "tool_result":
		r := &tenon.ToolResult{ID: b.text("tool_use_id"), IsError: string(rawjson.Field(b.start, "is_error")) == "true"}
		content := rawjson.Field(b.start, "content")
		if rawjson.StringBody(content) != nil {
			r.Content = []tenon.Content{tenon.Text(rawjson.String(content))}
		}
		for raw := range rawjson.Elements(content) {
			r.Content = append(r.Content, contentOf(raw))
		}
		return tenon.Part{Type: tenon.PartResult, Result: r}
	default:
		if p, _ := b.part(false); p != nil {
			return *p
		}
	}
	return tenon.Part{Type: tenon.PartOpaque, Wire: wire, Raw: b.start}
}

func contentOf(raw []byte) tenon.Content {
	c := newBlock(raw)
	if c == nil {
		return tenon.Content{Raw: append(json.RawMessage(nil), raw...)}
	}
	switch p := c.decode(); p.Type {
	case tenon.PartText:
		return tenon.Text(p.Text)
	case tenon.PartImage:
		return tenon.Content{Type: tenon.ContentImage, MimeType: p.MimeType, Data: p.Data}
	}
	return tenon.Content{Type: c.kind, Raw: c.start}
}

// Test_RA10_ContentForms checks that content as a string and as a list of blocks results in the same message.
func Test_RA10_ContentForms(t *testing.T) {
	var forms []string
	for _, in := range []string{`{"role":"user","content":"hi"}`, `{"content":[{"type":"text","text":"hi"}],"role":"user"}`} {
		m, err := decodeMessage([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		forms = append(forms, string(EncodeMessage(m)))
	}
	if forms[0] != forms[1] || forms[0] != `{"role":"user","content":[{"type":"text","text":"hi"}]}` {
		t.Errorf("%q", forms)
	}
}

// TestEncodedMessagesAreDecoded encodes and decodes every kind of part.
func TestEncodedMessagesAreDecoded(t *testing.T) {
	for _, m := range []*tenon.Message{
		{Role: tenon.RoleAssistant, Parts: []tenon.Part{
			{Type: tenon.PartThinking, Text: "hm", Wire: wire, Raw: json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"s"}`)},
			{Type: tenon.PartText, Text: "a"},
			{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "c1", Name: "f", Arguments: json.RawMessage(`{"x":9007199254740993}`)}}}},
		{Role: tenon.RoleTool, Parts: []tenon.Part{
			{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "c1", IsError: true, Content: []tenon.Content{tenon.Text("Error: boom")}}},
			{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "c2", Content: []tenon.Content{{Type: "image", MimeType: "image/png", Data: "aGk="}}}}}},
		{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "see"}, {Type: tenon.PartImage, MimeType: "image/png", Data: "aGk="}}},
	} {
		want := string(EncodeMessage(m))
		back, err := decodeMessage([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(EncodeMessage(back)); got != want || back.Role != m.Role {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	}
	for _, bad := range []string{``, `[]`, `{"role":"king","content":"x"}`, `{"role":"user","content":3}`, `{"role":"user","content":[{"no":"type"}]}`} {
		if m, err := decodeMessage([]byte(bad)); err == nil {
			t.Errorf("%s gives %+v", bad, m)
		}
	}
}

// TestBlankTextStaysHere checks that blank text blocks are not sent, because the provider refuses them, even if they
// come from the provider itself.
func TestBlankTextStaysHere(t *testing.T) {
	msg, err := decodeMessage([]byte(`{"role":"assistant","content":[{"type":"text","text":"","citations":[]},{"type":"text","text":"Hi","citations":[]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"role":"assistant","content":[{"type":"text","text":"Hi","citations":[]}]}`
	if got := string(EncodeMessage(msg)); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
}
