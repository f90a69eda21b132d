package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// encoder encodes messages for Chat Completions.
type encoder struct {
	quirks model.Quirks
	remote func(tenon.Content) (model.Remote, bool) // see [model.Config.Remote]
}

// key returns the cache key of encoded messages for these quirks.
func (e encoder) key() string {
	q := e.quirks
	return fmt.Sprintf("%s images=%t audio=%t documents=%t echo=%s need=%t ids=%d bridge=%t system=%t", wire, q.Images,
		q.Audio, q.Documents, strings.Join(q.EchoReasoning, ","), q.NeedReasoning, q.CallIDs, q.BridgeResults,
		q.SystemMessages) + q.RemoteKey()
}

// message returns the wire form of a message with a leading comma, or nothing if it has none. The
// results of a turn become several messages.
func (e encoder) message(msg *tenon.Message) ([]byte, error) {
	switch msg.Role {
	case tenon.RoleAssistant:
		return e.assistant(msg), nil
	case tenon.RoleTool:
		return e.results(msg), nil
	case tenon.RoleSystem:
		if e.quirks.SystemMessages {
			return append(rawjson.AppendString([]byte(`,{"role":"system","content":`), msg.Text()), '}'), nil
		}
	}
	return e.user(nil, msg.AsUser()), nil
}

// bridge returns a short assistant message. Some servers accept a user message after tool results only if such a
// message is between them.
func (e encoder) bridge() []byte {
	if !e.quirks.BridgeResults {
		return nil
	}
	return []byte(`,{"role":"assistant","content":"I have the results."}`)
}

func (e encoder) assistant(msg *tenon.Message) []byte {
	dst := []byte(`,{"role":"assistant"`)
	empty := len(dst)
	text := msg.Text()
	calls := msg.Calls()
	images := appendImages(nil, msg)
	switch audio := audioOf(msg); {
	case audio != "": // the id replaces the transcript
		dst = append(rawjson.AppendString(append(dst, `,"audio":{"id":`...), audio), '}')
	case len(e.reasoned(msg)) > 0: // reasoning is a part of the content
		dst = append(append(dst, `,"content":`...), e.reasoned(msg)...)
		if text != "" {
			dst = append(dst[:len(dst)-1], `,{"type":"text","text":`...)
			dst = append(rawjson.AppendString(dst, text), "}]"...)
		}
	case text != "":
		dst = append(dst, `,"content":`...)
		dst = rawjson.AppendString(dst, text)
	case len(calls) > 0:
		dst = append(dst, `,"content":null`...)
	case len(images) > 0:
		dst = append(dst, `,"content":""`...)
	default: // media without a text
		for i := range msg.Parts {
			if p := &msg.Parts[i]; p.Data != "" {
				dst = rawjson.AppendString(append(dst, `,"content":`...), model.Generated(p))
				break
			}
		}
	}
	dst = append(dst, images...)
	echoed := false
	for i := range msg.Parts {
		p := &msg.Parts[i]
		if p.Wire != wire || p.Type != tenon.PartThinking && p.Type != tenon.PartOpaque {
			continue
		}
		for k, v := range rawjson.Fields(p.Raw) {
			if slices.Contains(e.quirks.EchoReasoning, string(k)) && string(k) != model.ReasoningParts {
				dst = append(dst, `,"`...)
				dst = append(append(append(dst, k...), `":`...), v...)
				echoed = true
			}
		}
	}
	if e.quirks.NeedReasoning && !echoed && len(calls) > 0 {
		dst = append(dst, `,"reasoning_content":""`...)
	}
	if len(calls) > 0 {
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range calls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"id":`...)
			dst = rawjson.AppendString(dst, e.id(c.ID, i))
			dst = append(dst, `,"type":"function","function":{"name":`...)
			dst = rawjson.AppendString(dst, c.Name)
			dst = append(dst, `,"arguments":`...)
			dst = rawjson.AppendString(dst, string(model.AppendArguments(nil, c)))
			dst = append(dst, "}}"...)
		}
		dst = append(dst, ']')
	}
	if len(dst) == empty {
		return nil
	}
	return append(dst, '}')
}

// reasoned returns the list with the reasoning of an answer, for servers that have it in the content.
func (e encoder) reasoned(msg *tenon.Message) []byte {
	if !slices.Contains(e.quirks.EchoReasoning, model.ReasoningParts) {
		return nil
	}
	for i := range msg.Parts {
		if p := &msg.Parts[i]; p.Wire == wire && p.Type == tenon.PartThinking {
			if list := rawjson.Field(p.Raw, model.ReasoningParts); len(list) > 2 && list[0] == '[' {
				return list
			}
		}
	}
	return nil
}

// callID returns the id, or the index of the call in its turn if the id is missing. The result has
// the same index.
func callID(id string, nth int) string {
	if id == "" {
		return "call_" + strconv.Itoa(nth)
	}
	return id
}

// id returns the id of a call in the form that the server accepts. The ids of other providers may
// have other characters or another length. Equal ids stay equal.
func (e encoder) id(id string, nth int) string {
	id = callID(id, nth)
	n := e.quirks.CallIDs
	foreign := func(r rune) bool { return !alphanumeric(r) }
	if n <= 0 || len(id) == n && strings.IndexFunc(id, foreign) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:min(n, 2*len(sum))]
}

func alphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func (e encoder) results(msg *tenon.Message) []byte {
	var dst []byte
	var later []tenon.Content // content that only a user message can contain
	nth := 0
	for i := range msg.Parts {
		r := msg.Parts[i].Result
		if r == nil {
			continue
		}
		dst = append(dst, `,{"role":"tool","tool_call_id":`...)
		dst = rawjson.AppendString(dst, e.id(r.ID, nth))
		dst = append(dst, `,"content":`...)
		text, rest := e.result(r)
		dst = rawjson.AppendString(dst, text)
		dst = append(dst, '}')
		later = append(later, rest...)
		nth++
	}
	more := e.user(nil, &tenon.Message{Role: tenon.RoleUser, Parts: partsOf(msg)}, later...)
	if len(more) > 0 {
		dst = append(dst, e.bridge()...)
	}
	return append(dst, more...)
}

// partsOf returns the parts of a message that are not results.
func partsOf(msg *tenon.Message) []tenon.Part {
	return slices.DeleteFunc(slices.Clone(msg.Parts), func(p tenon.Part) bool { return p.Type == tenon.PartResult })
}

// result returns the text of a result, and the images, documents and audio for the following user
// message.
func (e encoder) result(r *tenon.ToolResult) (string, []tenon.Content) {
	return model.SplitResult(r, func(c tenon.Content) (tenon.Content, bool) {
		if mime, data, ok := model.ImageOf(c); ok && e.quirks.Images {
			return tenon.Content{Type: tenon.ContentImage, MimeType: mime, Data: data}, true
		}
		sound := c.Type == tenon.ContentAudio && e.quirks.Audio && audioFormat(c.MimeType) != ""
		return c, sound || e.document(c)
	})
}

// document reports whether a block is a PDF file that the model can read.
func (e encoder) document(c tenon.Content) bool {
	_, _, ok := model.DocumentOf(c)
	return ok && e.quirks.Documents
}

func audioFormat(mime string) string {
	switch strings.ToLower(mime) {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}

// userBlocks returns the texts, images and files of a user message as blocks, without empty texts.
func userBlocks(parts []tenon.Part) []tenon.Content {
	var blocks []tenon.Content
	for _, p := range parts {
		switch {
		case p.Type == tenon.PartText && p.Text != "":
			blocks = append(blocks, tenon.Text(p.Text))
		case p.Type == tenon.PartImage || p.Type == tenon.PartFile:
			blocks = append(blocks, model.ContentOf(&p))
		}
	}
	return blocks
}

// user appends a user message with the parts and the contents of results. A single text becomes a
// plain string, which every server accepts.
func (e encoder) user(dst []byte, msg *tenon.Message, more ...tenon.Content) []byte {
	blocks := append(userBlocks(msg.Parts), more...)
	if len(blocks) == 0 {
		return dst
	}
	dst = append(dst, `,{"role":"user","content":`...)
	if len(blocks) == 1 && blocks[0].Type == tenon.ContentText {
		return append(rawjson.AppendString(dst, blocks[0].Text), '}')
	}
	for i, c := range blocks {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		dst = e.block(append(dst, sep), c)
	}
	return append(dst, "]}"...)
}

func (e encoder) block(dst []byte, c tenon.Content) []byte {
	switch r, ok := e.remote(c); {
	case ok && r.ID != "":
		return append(rawjson.AppendString(append(dst, `{"type":"file","file":{"file_id":`...), r.ID), "}}"...)
	case ok:
		return append(rawjson.AppendString(append(dst, `{"type":"image_url","image_url":{"url":`...), r.URL), "}}"...)
	}
	mime, data, image := model.ImageOf(c)
	switch {
	case image && e.quirks.Images:
		dst = append(dst, `{"type":"image_url","image_url":{"url":`...)
		return append(rawjson.AppendString(dst, "data:"+mime+";base64,"+data), "}}"...)
	case e.document(c):
		name, data, _ := model.DocumentOf(c)
		dst = append(dst, `{"type":"file","file":{"filename":`...)
		dst = rawjson.AppendString(dst, name)
		dst = append(dst, `,"file_data":`...)
		return append(rawjson.AppendString(dst, "data:application/pdf;base64,"+data), "}}"...)
	case c.Type == tenon.ContentAudio && e.quirks.Audio && audioFormat(c.MimeType) != "":
		dst = append(dst, `{"type":"input_audio","input_audio":{"format":"`+audioFormat(c.MimeType)+`","data":`...)
		return append(rawjson.AppendString(dst, c.Data), "}}"...)
	}
	text := c.Text
	if c.Type != tenon.ContentText {
		text = model.Note(c)
	}
	dst = append(dst, `{"type":"text","text":`...)
	return append(rawjson.AppendString(dst, text), '}')
}

func encodeTools(tools []tenon.Tool) []byte {
	dst := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"type":"function","function":{"name":`...)
		dst = rawjson.AppendString(dst, t.Name)
		if t.Description != "" {
			dst = append(dst, `,"description":`...)
			dst = rawjson.AppendString(dst, t.Description)
		}
		dst = append(dst, `,"parameters":`...)
		dst = model.Schema(dst, t.Input)
		dst = model.AppendOptions(dst, &t, "openai", "name", "description", "parameters")
		dst = append(dst, "}}"...)
	}
	return append(dst, ']')
}
