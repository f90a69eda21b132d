package openai

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// This file handles the parts of a chat completion that are neither text nor calls: citations, images and audio.

// maxAnnotations bounds the annotations that an answer keeps until its end.
const maxAnnotations = 1024

// speech adds a piece of generated audio and of its transcript, which is the text of the answer.
func (a *answer) speech(v []byte) {
	for k, v := range rawjson.Fields(v) {
		switch string(k) {
		case "data":
			if len(a.audio) <= maxAudio {
				a.audio = append(a.audio, rawjson.StringBody(v)...)
			}
		case "id":
			a.audioID = rawjson.String(v)
		case "expires_at":
			a.audioEnds, _ = rawjson.Int(v)
		case "transcript":
			a.spoken = append(a.spoken, rawjson.StringBody(v)...)
			a.send(tenon.DeltaText, rawjson.String(v))
		}
	}
}

// maxAudio bounds the base64 of generated audio.
const maxAudio = 48 << 20

// generated returns the parts of images and audio. Streamed audio has no header. It is pcm16, the only format that
// OpenAI streams.
func (a *answer) generated() []tenon.Part {
	if len(a.audio) > 0 {
		joined, ok := joinBase64(a.audio)
		if !ok {
			joined = string(a.audio)
		}
		if p := a.media.Add("", joined, wire, a.rawAudio()); p != nil && !strings.HasPrefix(p.MimeType, "audio/") {
			a.media.Retype(p.Data, "audio/pcm")
		}
	}
	a.warnings = append(a.warnings, a.media.Warnings...)
	return a.media.Parts()
}

// rawImage is the provider's form of a generated image, without its data. Only models that sent such an image get it
// back (ChatAssistantMessage of OpenRouter's API reference).
const rawImage = `{"type":"image_url"}`

// appendImages appends the generated images of an answer that are sent back to the model.
func appendImages(dst []byte, msg *tenon.Message) []byte {
	begun := false
	for i := range msg.Parts {
		p := &msg.Parts[i]
		if p.Wire != wire || p.Type != tenon.PartImage || p.Data == "" || len(p.Raw) == 0 {
			continue
		}
		sep := `,`
		if !begun {
			sep, begun = `,"images":[`, true
		}
		dst = append(append(dst, sep...), `{"type":"image_url","image_url":{"url":`...)
		dst = append(rawjson.AppendString(dst, "data:"+p.MimeType+";base64,"+p.Data), "}}"...)
	}
	if begun {
		dst = append(dst, ']')
	}
	return dst
}

// rawAudio returns the provider's form of generated audio without its data, or nil if the answer has no id for it.
func (a *answer) rawAudio() []byte {
	if a.audioID == "" || a.audioEnds <= 0 {
		return nil
	}
	raw := rawjson.AppendString([]byte(`{"id":`), a.audioID)
	return append(strconv.AppendInt(append(raw, `,"expires_at":`...), int64(a.audioEnds), 10), '}')
}

// audioOf returns the id of the generated audio of an answer, or "". The provider keeps the audio until it expires
// (ChatCompletionAudio of openai-go); see [fresh].
func audioOf(msg *tenon.Message) string {
	for i := range msg.Parts {
		if p := &msg.Parts[i]; p.Wire == wire && p.Type == tenon.PartFile && p.Data != "" {
			if id := rawjson.String(rawjson.Field(p.Raw, "id")); id != "" {
				return id
			}
		}
	}
	return ""
}

// fresh returns the messages without the ids of audio that the provider has deleted or deletes within a minute.
func fresh(msgs []*tenon.Message, now time.Time) []*tenon.Message {
	var out []*tenon.Message
	for i, m := range msgs {
		if m.Role != tenon.RoleAssistant || audioOf(m) == "" {
			continue
		}
		for j := range m.Parts {
			ends, ok := rawjson.Int(rawjson.Field(m.Parts[j].Raw, "expires_at"))
			if !ok || m.Parts[j].Type != tenon.PartFile || now.Add(time.Minute).Before(time.Unix(int64(ends), 0)) {
				continue
			}
			if out == nil {
				out = slices.Clone(msgs)
			}
			parts := slices.Clone(m.Parts)
			parts[j].Wire, parts[j].Raw = "", nil
			out[i] = &tenon.Message{Role: m.Role, By: m.By, Partial: m.Partial, Parts: parts}
			break
		}
	}
	if out == nil {
		return msgs
	}
	return out
}

// joinBase64 joins pieces that may each have their own padding.
func joinBase64(b []byte) (string, bool) {
	if i := bytes.IndexByte(b, '='); i < 0 || i >= len(b)-2 {
		return string(b), true
	}
	var data []byte
	for len(b) > 0 {
		n := bytes.IndexByte(b, '=')
		if n < 0 {
			n = len(b)
		}
		piece, err := base64.RawStdEncoding.DecodeString(string(b[:n]))
		if err != nil {
			return "", false
		}
		data = append(data, piece...)
		b = bytes.TrimLeft(b[n:], "=")
	}
	return base64.StdEncoding.EncodeToString(data), true
}

// cited returns the citations of the text of a chat completion.
func (a *answer) cited(text string) []tenon.Citation {
	if a.annotations == nil && a.sources == nil && a.results == nil {
		return nil
	}
	var c model.Citations
	for _, x := range a.annotations {
		c.Annotation(x, text, 0)
	}
	if a.results != nil { // these are the sources of citations, but with titles
		c.SourceList(a.results)
	} else if len(a.annotations) == 0 {
		c.SourceList(a.sources)
	}
	if w := c.Warning(); w != "" {
		a.warn("%s", w)
	}
	return c.In(text)
}

// cited returns the citations in the annotations of a message item.
func (a *output) cited(raw []byte, text string) []tenon.Citation {
	var list model.Citations
	at := 0
	for c := range rawjson.Elements(rawjson.Field(raw, "content")) {
		piece := ""
		for k, v := range rawjson.Fields(c) {
			if string(k) == "text" || string(k) == "refusal" {
				piece += rawjson.String(v)
			}
		}
		for x := range rawjson.Elements(rawjson.Field(c, "annotations")) {
			list.Annotation(x, piece, at)
		}
		at += len(piece)
	}
	if w := list.Warning(); w != "" {
		a.warn("%s", w)
	}
	return list.In(text)
}

// imageItem is the type of an item with a generated image.
const imageItem = "image_generation_call"

// image returns the part of a generated image. The item is sent back together with the image.
func (a *output) image(raw []byte) *tenon.Part {
	var data, format string
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "result":
			data = rawjson.String(v)
		case "output_format":
			format = rawjson.String(v)
		}
	}
	if data == "" {
		return &tenon.Part{Type: tenon.PartOpaque, Wire: model.WireResponses, Raw: raw}
	}
	mime := ""
	if format != "" {
		mime = "image/" + format
	}
	p := a.media.Add(mime, data, model.WireResponses, model.SetMember(nil, raw, []byte(`""`), "result"))
	a.warnings = append(a.warnings, a.media.Warnings...)
	a.media.Warnings = nil
	if p == nil { // the item is sent back in any case
		return &tenon.Part{Type: tenon.PartOpaque, Wire: model.WireResponses, Raw: raw}
	}
	return p
}

// use describes an item in which the provider used one of the provider's tools.
func use(kind string, raw []byte) string {
	var name string
	var input []byte
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "server_label":
			name = rawjson.String(v) + "."
		case "name":
			name += rawjson.String(v)
		case "action", "queries", "code", "arguments", "operation":
			if !rawjson.IsNull(v) {
				input = v
			}
		}
	}
	switch kind {
	case "web_search_call", "file_search_call", "code_interpreter_call", "shell_call", "computer_call":
		return model.Use(strings.TrimSuffix(kind, "_call"), input)
	case "mcp_call":
		return model.Use(name, input)
	}
	return ""
}
