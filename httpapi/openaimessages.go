package httpapi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"path"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/exactjson"
)

// conversation is the content of the messages of a completion request.
type conversation struct {
	system   string
	question string // last messages of the user; empty after results of the client's tools
	files    []tenon.Part
	before   []json.RawMessage // the messages before the question, for [transcript.Read]
	results  []clientResult    // results of the client's tools at the end, all for one run
}

// openMessageIn is a message of a request.
type openMessageIn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
}

// openPart is a part of a message's content.
type openPart struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		ID   string `json:"file_id"`
		Data string `json:"file_data"`
		Name string `json:"filename"`
	} `json:"file"`
	Audio struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

// readMessages reads the messages. System messages at the beginning and after the question become the system prompt.
// Other system messages keep their position. The last messages of the user are the question. If results of the client's
// tools precede them, they are a message into the run of these results.
func (c *call) readMessages(list []json.RawMessage) (t conversation, err error) {
	var messages []openMessageIn
	var raws []json.RawMessage
	spoken := lastAnswer(list)
	for i, raw := range list {
		var m openMessageIn
		if err := exactjson.DecodeOpen(raw, &m); err != nil {
			return t, tenon.Errorf(tenon.CodeInvalid, "messages[%d] is not a valid message: %s", i, misfit(err))
		}
		if m.Role != "system" && m.Role != "developer" {
			messages, raws = append(messages, m), append(raws, raw)
			continue
		}
		text, _, err := c.parts(m.Content, false)
		if err != nil {
			return t, tenon.Errorf(tenon.ErrorCode(err), "messages[%d]: %w", i, err)
		}
		if len(messages) > 0 && text != "" && (i < spoken || i == spoken+1) {
			m = openMessageIn{Role: string(tenon.RoleSystem)}
			raw, err := encode(&tenon.Message{Role: tenon.RoleSystem,
				Parts: []tenon.Part{{Type: tenon.PartText, Text: text}}})
			if err != nil {
				return t, err
			}
			messages, raws = append(messages, m), append(raws, raw)
			continue
		}
		t.system = strings.TrimSpace(t.system + "\n\n" + text)
	}
	end := len(messages)
	if end > 0 && messages[end-1].Role == "user" {
		end--
		if t.question, t.files, err = c.parts(messages[end].Content, true); err != nil {
			return t, tenon.Errorf(tenon.ErrorCode(err), "the last message: %w", err)
		}
		if strings.TrimSpace(t.question) == "" {
			return t, tenon.Errorf(tenon.CodeInvalid, "the last message of the user has no text")
		}
	}
	if err := c.readResults(&t, messages[:end]); err != nil {
		return t, err
	}
	switch {
	case t.question == "" && len(t.results) == 0 && end > 0:
		return t, tenon.Errorf(tenon.CodeInvalid, "the last message, without system and developer messages, "+
			"must have the role user, or tool with a result of a call, not '%s'",
			tenon.Visible(messages[end-1].Role))
	case t.question == "" && len(t.results) == 0:
		return t, tenon.Errorf(tenon.CodeInvalid, "messages must end with a message of the user that has text")
	}
	for i := range end {
		raw, err := c.past(&messages[i], raws[i])
		if err != nil {
			return t, tenon.Errorf(tenon.ErrorCode(err), "message %d: %w", i+1, err)
		}
		t.before = append(t.before, raw)
	}
	return t, nil
}

// lastAnswer returns the index of the last message of the assistant that has no tool calls, or -1 if there is none.
func lastAnswer(list []json.RawMessage) int {
	for i := len(list) - 1; i >= 0; i-- {
		var m struct {
			Role  string            `json:"role"`
			Calls []json.RawMessage `json:"tool_calls"`
		}
		if json.Unmarshal(list[i], &m) == nil && m.Role == "assistant" && len(m.Calls) == 0 {
			return i
		}
	}
	return -1
}

// readResults reads results of the client's tools at the end of the messages. Messages of the user that follow them are
// part of the question.
func (c *call) readResults(t *conversation, messages []openMessageIn) error {
	end := len(messages)
	for end > 0 && messages[end-1].Role == "user" {
		end--
	}
	for i := end - 1; i >= 0 && messages[i].Role == "tool"; i-- {
		m := &messages[i]
		run, step, ok := parseCall(m.CallID)
		if !ok && t.question == "" {
			return tenon.Errorf(tenon.CodeInvalid, "there is no call '%s' that waits for a result: results continue "+
				"the run whose answer had the call", tenon.Visible(m.CallID))
		}
		if !ok {
			return nil // the calls are not tenon's; the conversation is from elsewhere
		}
		text, _, err := c.parts(m.Content, false)
		if err != nil {
			return tenon.Errorf(tenon.ErrorCode(err), "the result of call '%s': %w", m.CallID, err)
		}
		t.results = append(t.results, clientResult{run: run, step: step, text: text,
			masks: c.h.Service().Info().Redacts})
	}
	if len(t.results) == 0 || end == len(messages) {
		return nil
	}
	var texts []string
	for i := range messages[end:] {
		text, files, err := c.parts(messages[end+i].Content, true)
		if err != nil {
			return err
		}
		texts, t.files = append(texts, text), append(files, t.files...)
	}
	t.question = strings.Join(append(texts, t.question), "\n\n")
	return nil
}

// past returns an earlier message in a form that [transcript.Read] accepts. It reads the files in a user's message.
func (c *call) past(m *openMessageIn, raw json.RawMessage) (json.RawMessage, error) {
	var text string
	if m.Role != "user" || json.Unmarshal(m.Content, &text) == nil {
		return raw, nil
	}
	text, files, err := c.parts(m.Content, true)
	if err != nil {
		return nil, err
	}
	out := &tenon.Message{Role: tenon.RoleUser}
	if text != "" {
		out.Parts = append(out.Parts, tenon.Part{Type: tenon.PartText, Text: text})
	}
	out.Parts = append(out.Parts, files...)
	return encode(out)
}

// parts reads the content of a message: a text, or a list of parts. Only a user's message may contain files.
func (c *call) parts(raw json.RawMessage, user bool) (text string, files []tenon.Part, err error) {
	if json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var parts []openPart
	if err := exactjson.DecodeOpen(raw, &parts); err != nil {
		return "", nil, tenon.Errorf(tenon.CodeInvalid, "content must be a text or a list of parts: %s", misfit(err))
	}
	for i := range parts {
		p := &parts[i]
		if p.Type == "text" {
			text += p.Text
			continue
		}
		if !user {
			return "", nil, tenon.Errorf(tenon.CodeInvalid, "a part of type '%s' is not supported in this message; "+
				"only text is", tenon.Visible(p.Type))
		}
		if len(files) == maxAttached {
			return "", nil, tenon.Errorf(tenon.CodeInvalid, "more than %d files in one message", maxAttached)
		}
		f, err := part(p)
		if err != nil {
			return "", nil, err
		}
		files = append(files, f)
	}
	return text, files, nil
}

// part reads a part that is a picture, a file or a sound.
func part(p *openPart) (tenon.Part, error) {
	switch p.Type {
	case "image_url":
		return picture(p.Image.URL)
	case "file":
		switch {
		case p.File.ID != "" && p.File.Data == "": // a file at the model's provider, because tenon stores none
			return tenon.Part{Type: tenon.PartFile, Text: path.Base(p.File.Name), URI: "file-id:" + p.File.ID}, nil
		case p.File.Data == "":
			return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "a part of type 'file' needs file_data, or the "+
				"file_id of a file at the model's provider")
		}
		name := cmp.Or(p.File.Name, "file")
		data, err := base64Of(p.File.Data)
		if err != nil {
			return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "file '%s': %w", tenon.Visible(name), err)
		}
		return host.FilePart(path.Base(name), data)
	case "input_audio":
		data, err := base64Of(p.Audio.Data)
		if err != nil {
			return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "input_audio: %w", err)
		}
		return host.FilePart("audio."+path.Base(p.Audio.Format), data)
	}
	return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "a part of type '%s' is not supported; text, image_url, file "+
		"and input_audio are", tenon.Visible(p.Type))
}

// base64Of decodes bytes in base64, also as a data: URL (RFC 2397).
func base64Of(text string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		if _, text, ok = strings.Cut(rest, ";base64,"); !ok {
			return nil, tenon.Errorf(tenon.CodeInvalid, "the data: URL is not in base64")
		}
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) == 0 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the data is empty or not in base64")
	}
	return data, nil
}

// picture reads the picture of an image_url: a data: URL, or an https URL, which the provider or tenon reads.
func picture(address string) (tenon.Part, error) {
	switch scheme, _, _ := strings.Cut(address, ":"); scheme {
	case "data":
	case "https":
		p, ok := host.AddressPart(address)
		if !ok {
			return p, tenon.Errorf(tenon.CodeInvalid, "image_url: it is not an https URL")
		}
		p.Type = tenon.PartImage
		return p, nil
	default:
		return tenon.Part{}, tenon.Errorf(tenon.CodeInvalid, "image_url: its url must be a data: or https: URL")
	}
	data, err := base64Of(address)
	var p tenon.Part
	if err == nil {
		p, err = host.FilePart("picture", data)
	}
	if err == nil && p.Type != tenon.PartImage {
		err = tenon.Errorf(tenon.CodeInvalid, "it is no picture of type png, jpeg, gif or webp, but %s",
			tenon.Visible(http.DetectContentType(data)))
	}
	if err != nil {
		return p, tenon.Errorf(cmp.Or(tooLarge(err), tenon.CodeInvalid), "image_url: %w", err)
	}
	return p, nil
}

// tooLarge returns the code of an error that is about a size, or "".
func tooLarge(err error) tenon.Code {
	if code := tenon.ErrorCode(err); code == tenon.CodeTooLarge {
		return code
	}
	return ""
}
