package tenon

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// The kinds of content that tenon knows. Others are kept and passed on raw.
const (
	ContentText     = "text"
	ContentImage    = "image"
	ContentAudio    = "audio"
	ContentResource = "resource"
	ContentLink     = "resource_link"
)

// Content is one block of a tool result or prompt (MCP ContentBlock). Raw holds
// the block as it came, with the fields and kinds that tenon does not know; the
// other fields are a view of it.
type Content struct {
	Type     string
	Text     string // text, and the text of an embedded resource
	Data     string // base64 as received: image, audio, blob of an embedded resource
	MimeType string
	URI      string // resource, resource_link
	Name     string // resource_link
	Raw      json.RawMessage
	// Artifact is the id under which a block with Data can be read, where it is part
	// of a run (see [ArtifactID]). It is never part of the wire form.
	Artifact string
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

// MarshalJSON writes the block as it came, or from its fields where it was
// made here.
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

// UnmarshalJSON keeps the bytes in Raw and reads the known fields. It never
// refuses valid JSON: blocks come from servers and have to come back out of the
// journal whatever they are. A field of another type than it should have is
// taken as absent.
func (c *Content) UnmarshalJSON(b []byte) error {
	c.read(append(json.RawMessage(nil), b...))
	return nil
}

// read takes a block as it came, which it keeps. What a resource says of itself counts,
// not what is beside it.
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

// take reads the known fields of an object and returns the member resource.
func (c *Content) take(object []byte, data string) (resource []byte) {
	for key, v := range rawjson.Members(object) {
		switch string(key) {
		case "type":
			c.Type = rawjson.String(v)
		case "text":
			c.Text = rawjson.String(v)
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

// Result is what a tool call gave.
type Result struct {
	Content    []Content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
	// Input is set if the server wants input before it can finish; then the
	// result is not final.
	Input *InputRequired `json:"-"`
	// Raw is the whole result object as it came. MarshalJSON prefers it.
	Raw json.RawMessage `json:"-"`
}

// ErrorResult returns a result that tells the model what went wrong.
func ErrorResult(text string) *Result {
	return &Result{Content: []Content{Text(text)}, IsError: true}
}

// MarshalJSON writes the result as it came, or from its fields where it was
// made here.
func (r *Result) MarshalJSON() ([]byte, error) {
	if len(r.Raw) > 0 {
		return r.Raw, nil
	}
	if r.isText() { // as nearly all of those are that are made here
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

// isText reports whether the result is of texts alone that were made here.
func (r *Result) isText() bool {
	for _, c := range r.Content {
		if c.Type != ContentText || len(c.Raw) > 0 {
			return false
		}
	}
	return len(r.Content) > 0 && len(r.Structured) == 0 && len(r.Meta) == 0
}

// UnmarshalJSON reads the fields and keeps the bytes in Raw. Like that of
// [Content] it takes whatever a server sent.
func (r *Result) UnmarshalJSON(b []byte) error {
	*r = Result{Raw: append(json.RawMessage(nil), b...)}
	// The fields are parts of Raw: a large result is not copied for each.
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

// Text joins the text blocks with newlines; where there is no content at all it
// is the structured content as JSON.
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
