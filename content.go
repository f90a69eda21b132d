package tenon

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// The kinds of content that tenon interprets. Other kinds are kept and passed on as raw JSON.
const (
	ContentText     = "text"
	ContentImage    = "image"
	ContentAudio    = "audio"
	ContentResource = "resource"
	ContentLink     = "resource_link"
)

// Content is one block of a tool result or prompt (MCP ContentBlock). Raw holds the block as received,
// including unknown fields and kinds. The other fields are a view of it.
type Content struct {
	Type     string
	Text     string // text, and the text of an embedded resource
	Data     string // base64 as received: image, audio, blob of an embedded resource
	MimeType string
	URI      string // resource, resource_link
	Name     string // resource_link
	Raw      json.RawMessage
	// Artifact is the id under which the data of the block can be read, if the block is part of a run (see
	// [ArtifactID]). It is never part of the wire form.
	Artifact string
	// Remote is the [Part.URI] of a message's part. It is never part of the wire form.
	Remote string
}

// Text returns a text block.
func Text(s string) Content { return Content{Type: ContentText, Text: s} }

type contentWire struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
	Resource *struct {
		URI      string `json:"uri"`
		MimeType string `json:"mimeType,omitempty"`
		Text     string `json:"text,omitempty"`
		Blob     string `json:"blob,omitempty"`
	} `json:"resource,omitempty"`
}

// MarshalJSON writes the block as received. A block created here is written from its fields.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c.Raw) > 0 {
		return c.Raw, nil
	}
	if c.Type == ContentText {
		return c.appendText(nil), nil
	}
	w := contentWire{Type: c.Type, Text: c.Text, Data: c.Data, MimeType: c.MimeType, URI: c.URI, Name: c.Name}
	if c.Type == ContentResource {
		w = contentWire{Type: c.Type}
		w.Resource = &struct {
			URI      string `json:"uri"`
			MimeType string `json:"mimeType,omitempty"`
			Text     string `json:"text,omitempty"`
			Blob     string `json:"blob,omitempty"`
		}{c.URI, c.MimeType, c.Text, c.Data}
	}
	return json.Marshal(w)
}

func (c Content) appendText(b []byte) []byte {
	return append(rawjson.AppendString(append(b, `{"type":"text","text":`...), c.Text), '}')
}

// UnmarshalJSON keeps the bytes in Raw and reads the known fields. It accepts any valid JSON, because blocks come from
// servers and must be readable in the journal later. If the text is not a string, Text is its JSON. Any other field of
// an unexpected type is treated as absent.
func (c *Content) UnmarshalJSON(b []byte) error {
	c.read(append(json.RawMessage(nil), b...))
	return nil
}

// read reads a block and keeps its bytes. An embedded resource overrides fields of the block.
func (c *Content) read(raw json.RawMessage) {
	*c = Content{Raw: raw}
	resource := c.take(raw, "data")
	if resource == nil {
		return
	}
	of := *c
	*c = Content{Raw: raw}
	c.take(resource, "blob")
	c.Type, c.Name = of.Type, of.Name
}

// take reads the known fields of an object. It returns the member resource.
func (c *Content) take(object []byte, data string) (resource []byte) {
	for key, v := range rawjson.Members(object) {
		switch string(key) {
		case "type":
			c.Type = rawjson.String(v)
		case "text":
			c.Text = rawjson.String(v)
			if v[0] != '"' && string(v) != "null" {
				c.Text = string(v) // v is not a string; its JSON is better than no text
			}
		case data:
			c.Data = rawjson.String(v)
		case "mimeType":
			c.MimeType = rawjson.String(v)
		case "uri":
			c.URI = rawjson.String(v)
		case "name":
			c.Name = rawjson.String(v)
		case "resource":
			resource = v
		}
	}
	return resource
}

// Result is the result of a tool call.
type Result struct {
	Content    []Content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
	// Input is set if the server needs input before it can finish. The result is then not final.
	Input *InputRequired `json:"-"`
	// Declared is the structured content as the server sent it. It is set only if servers.Config.ResultFormat selects a
	// form of the result without structured content. It is only checked against the tool's output schema.
	Declared json.RawMessage `json:"-"`
	// Raw is the complete result object as received. MarshalJSON prefers it.
	Raw json.RawMessage `json:"-"`
}

// ErrorResult returns an error result with this text for the model.
func ErrorResult(text string) *Result {
	return &Result{Content: []Content{Text(text)}, IsError: true}
}

// MarshalJSON writes the result as received. A result created here is written from its fields.
func (r *Result) MarshalJSON() ([]byte, error) {
	if len(r.Raw) > 0 {
		return r.Raw, nil
	}
	if r.isText() { // the usual case for results created here
		b := append(make([]byte, 0, 64+len(r.Content[0].Text)), `{"content":[`...)
		for i, c := range r.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = c.appendText(b)
		}
		b = append(b, ']')
		if r.IsError {
			b = append(b, `,"isError":true`...)
		}
		return append(b, '}'), nil
	}
	type plain Result
	p := plain(*r)
	if p.Content == nil {
		p.Content = []Content{}
	}
	return json.Marshal(&p)
}

// isText reports whether the result only consists of texts created here.
func (r *Result) isText() bool {
	for _, c := range r.Content {
		if c.Type != ContentText || len(c.Raw) > 0 {
			return false
		}
	}
	return len(r.Content) > 0 && len(r.Structured) == 0 && len(r.Meta) == 0
}

// UnmarshalJSON reads the fields and keeps the bytes in Raw. Like [Content.UnmarshalJSON], it accepts any
// valid JSON.
func (r *Result) UnmarshalJSON(b []byte) error {
	*r = Result{Raw: append(json.RawMessage(nil), b...)}
	// The fields share the memory of Raw, so that a large result is not copied.
	for key, v := range rawjson.Members(r.Raw) {
		switch string(key) {
		case "content":
			r.Content = nil
			if v[0] == '[' {
				r.Content = []Content{}
			}
			for raw := range rawjson.Elements(v) {
				r.Content = append(r.Content, Content{})
				r.Content[len(r.Content)-1].read(slices.Clip(raw))
			}
		case "isError":
			r.IsError = string(v) == "true"
		case "structuredContent":
			r.Structured = slices.Clip(v)
		case "_meta":
			r.Meta = slices.Clip(v)
		}
	}
	return nil
}

// Text joins the text blocks with newlines. If there is no content at all, it returns the structured content
// as JSON.
func (r *Result) Text() string {
	var parts []string
	for _, c := range r.Content {
		if c.Type == ContentText {
			parts = append(parts, c.Text)
		}
	}
	if len(r.Content) == 0 && len(r.Structured) > 0 {
		return string(r.Structured)
	}
	return strings.Join(parts, "\n")
}
