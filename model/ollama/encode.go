package ollama

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// encoder encodes messages.
type encoder struct{ images, audio bool }

// key returns the cache key of encoded messages.
func (e encoder) key() string { return fmt.Sprintf("%s images=%t audio=%t", wire, e.images, e.audio) }

// message returns the wire form of a message with a leading comma, or nothing if it has none. The results of a turn
// become several messages.
func (e encoder) message(msg *tenon.Message) ([]byte, error) {
	switch msg.Role {
	case tenon.RoleAssistant:
		return assistant(msg), nil
	case tenon.RoleTool:
		return e.results(msg), nil
	}
	return e.user(nil, msg.AsUser()), nil
}

func assistant(msg *tenon.Message) []byte {
	text, calls := msg.Text(), msg.Calls()
	dst := []byte(`,{"role":"assistant","content":`)
	thought := false
	for i := range msg.Parts {
		p := &msg.Parts[i]
		thought = thought || p.Type == tenon.PartThinking && p.Wire == wire
		if text == "" && p.Data != "" { // the API accepts no media in answers
			text = model.Generated(p)
		}
	}
	if text == "" && len(calls) == 0 && !thought {
		return nil
	}
	dst = rawjson.AppendString(dst, text)
	for i := range msg.Parts {
		if p := &msg.Parts[i]; p.Type == tenon.PartThinking && p.Wire == wire {
			dst = rawjson.AppendString(append(dst, `,"thinking":`...), p.Text)
			break
		}
	}
	for i, c := range calls {
		sep := `},{`
		if i == 0 {
			sep = `,"tool_calls":[{`
		}
		dst = append(dst, sep...)
		dst = rawjson.AppendString(append(dst, `"id":`...), callID(c.ID, i))
		dst = strconv.AppendInt(append(dst, `,"function":{"index":`...), int64(i), 10)
		dst = rawjson.AppendString(append(dst, `,"name":`...), c.Name)
		dst = append(model.AppendArguments(append(dst, `,"arguments":`...), c), '}')
	}
	if len(calls) > 0 {
		dst = append(dst, "}]"...)
	}
	return append(dst, '}')
}

// callID returns the id, or the index of the call in its turn if the id is missing. The result has the same index.
func callID(id string, nth int) string {
	if id == "" {
		return "call_" + strconv.Itoa(nth)
	}
	return id
}

func (e encoder) results(msg *tenon.Message) []byte {
	var dst []byte
	more := &tenon.Message{Role: tenon.RoleUser} // content that only a user message can contain
	nth := 0
	for i := range msg.Parts {
		r := msg.Parts[i].Result
		if r == nil {
			more.Parts = append(more.Parts, msg.Parts[i])
			continue
		}
		text, media := e.result(r)
		dst = rawjson.AppendString(append(dst, `,{"role":"tool","tool_name":`...), r.Name)
		dst = rawjson.AppendString(append(dst, `,"tool_call_id":`...), callID(r.ID, nth))
		dst = append(rawjson.AppendString(append(dst, `,"content":`...), text), '}')
		more.Parts = append(more.Parts, media...)
		nth++
	}
	return e.user(dst, more)
}

// result returns the text of a result, and the images that follow in a user message, because the templates of most
// models ignore images of results.
func (e encoder) result(r *tenon.ToolResult) (string, []tenon.Part) {
	text, later := model.SplitResult(r, func(c tenon.Content) (tenon.Content, bool) {
		data, ok := e.media(c)
		out := tenon.Content{Type: tenon.ContentAudio, MimeType: c.MimeType, Data: data}
		if strings.HasPrefix(strings.ToLower(c.MimeType), "image/") {
			out.Type = tenon.ContentImage
		}
		return out, ok
	})
	var media []tenon.Part
	for _, c := range later {
		p := tenon.Part{Type: tenon.PartFile, MimeType: c.MimeType, Data: c.Data}
		if c.Type == tenon.ContentImage {
			p.Type = tenon.PartImage
		}
		media = append(media, p)
	}
	return text, media
}

// media returns the base64 data of an image, or of audio if the model accepts audio. Both are elements of "images"
// (openai/openai.go, input_audio).
func (e encoder) media(c tenon.Content) (data string, ok bool) {
	if _, data, ok = model.ImageOf(c); ok {
		return data, e.images
	}
	_, data, ok = model.AudioOf(c)
	return data, ok && e.audio
}

// user appends a user message. Media that the model does not take become notes.
func (e encoder) user(dst []byte, msg *tenon.Message) []byte {
	var texts []string
	var media []string
	for i := range msg.Parts {
		p := &msg.Parts[i]
		switch p.Type {
		case tenon.PartText:
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		case tenon.PartImage, tenon.PartFile:
			c := model.ContentOf(p)
			if data, ok := e.media(c); ok {
				media = append(media, data)
			} else {
				texts = append(texts, model.Note(c))
			}
		}
	}
	if len(texts) == 0 && len(media) == 0 {
		return dst
	}
	dst = rawjson.AppendString(append(dst, `,{"role":"user","content":`...), strings.Join(texts, "\n\n"))
	for i, data := range media {
		sep := `,`
		if i == 0 {
			sep = `,"images":[`
		}
		dst = rawjson.AppendString(append(dst, sep...), data)
	}
	if len(media) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func encodeTools(tools []tenon.Tool) []byte {
	dst := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(append(dst, `{"type":"function","function":{"name":`...), t.Name)
		if t.Description != "" {
			dst = rawjson.AppendString(append(dst, `,"description":`...), t.Description)
		}
		dst = model.Schema(append(dst, `,"parameters":`...), t.Input)
		dst = append(dst, "}}"...)
	}
	return append(dst, ']')
}
