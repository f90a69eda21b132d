package bedrock

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// bridge is a short answer of the model that is inserted between the results of a turn and a message of the user.
const bridge = `]},{"role":"assistant","content":[{"text":"I have the results."}]},{"role":"user","content":[`

const cachePoint = `{"cachePoint":{"type":"default"}}`

// body builds the request. Members that change least come first.
func (m *Model) body(req *tenon.Request) (*model.Body, error) {
	req = model.Offer(m.cfg.Fill(req))
	tools, form := req.Tools, &m.form
	if m.cfg.ToolMode == model.ToolsNone || req.ToolChoice == "none" {
		tools = nil // the API has no tool choice "none"
	}
	if len(tools) == 0 {
		form = &m.flat // the API refuses calls and results in a request without tools
	}
	h := m.appendSettings([]byte{'{'}, req)
	b := &model.Body{}
	switch hosted := m.cfg.AppendHosted(nil, req); {
	case len(tools) > 0:
		b.Add(append(h, `,"toolConfig":{"tools":[`...))
		b.Add(m.tools.Get(tools, m.encodeTools))
		h = append(appendChoice(append(hosted, ']'), req.ToolChoice), '}')
	case len(hosted) > 0:
		h = append(append(append(h, `,"toolConfig":{"tools":[`...), hosted[1:]...), "]}"...)
	}
	if req.System != "" {
		h = append(h, `,"system":[{"text":`...)
		h = append(rawjson.AppendString(h, req.System), '}')
		if m.quirks.Cache {
			h = append(h, ","+cachePoint...)
		}
		h = append(h, ']')
	}
	b.Add(append(h, `,"messages":[`...))
	if err := m.addMessages(b, form, req.Messages); err != nil {
		return nil, err
	}
	b.Add([]byte("]}"))
	return b, nil
}

// addMessages adds the messages. The API requires alternating roles, so consecutive messages with the same role become
// one message.
func (m *Model) addMessages(b *model.Body, form *model.Form, msgs []*tenon.Message) error {
	open := ""
	for i, msg := range msgs {
		blocks, err := form.Message(msg)
		if err != nil {
			return err
		}
		if len(blocks) == 0 {
			continue
		}
		said := msg.Role == tenon.RoleUser || msg.Role == tenon.RoleSystem
		if m.quirks.BridgeResults && open == "user" && said && msgs[i-1].Role == tenon.RoleTool {
			b.Add([]byte(bridge))
			blocks = blocks[1:]
		}
		role := "user"
		if msg.Role == tenon.RoleAssistant {
			role = "assistant"
		}
		if role != open {
			head := `{"role":"` + role + `","content":[`
			if open != "" {
				head = "]}," + head
			}
			b.Add([]byte(head))
			blocks = blocks[1:]
			open = role
		}
		b.Add(blocks)
	}
	if open == "user" && m.quirks.Cache {
		b.Add([]byte("," + cachePoint))
	}
	if open != "" {
		b.Add([]byte("]}"))
	}
	return nil
}

// appendSettings appends the members for settings: all that do not depend on the conversation.
func (m *Model) appendSettings(dst []byte, req *tenon.Request) []byte {
	dst = append(dst, `"inferenceConfig":{"maxTokens":`...)
	dst = strconv.AppendInt(dst, int64(cmp.Or(max(req.MaxTokens, 0), m.cfg.MaxTokens)), 10)
	dst = model.AppendNumber(dst, "temperature", req.Temperature, m.cfg.Temperature)
	dst = model.AppendNumber(dst, "topP", req.TopP, m.cfg.TopP)
	dst = append(model.AppendSampling(dst, wire, &req.Sampling), '}')
	dst = m.appendSchema(append(dst, m.effort(req.Effort)...), req)
	return m.cfg.AddSettings(dst, wire, req, &req.Sampling)
}

// appendSchema appends the schema of the answer, as a text. Anthropic's models refuse schemas that are not strict.
// The form is OutputConfig of aws-sdk-go-v2.
func (m *Model) appendSchema(dst []byte, req *tenon.Request) []byte {
	if !m.quirks.TakesSchema(req) || strings.Contains(m.cfg.Model, "anthropic.") && !model.IsStrict(req.Output) {
		return dst
	}
	dst = append(dst, `,"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{`...)
	dst = rawjson.AppendString(append(dst, `"name":"answer","schema":`...), string(model.AppendSchema(nil, req.Output)))
	return append(dst, "}}}}"...)
}

// effort returns the member for an effort, with a comma before it. Its form depends on the maker of the model.
func (m *Model) effort(effort string) string {
	if !m.cfg.TakesEffort(effort) {
		return ""
	}
	const member = `,"additionalModelRequestFields":`
	switch name := m.cfg.Model; {
	case strings.Contains(name, "anthropic."):
		return member + `{"output_config":{"effort":"` + effort + `"}}`
	case strings.Contains(name, "amazon.nova-2"):
		return member + `{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"` + effort + `"}}`
	}
	return member + `{"reasoning_effort":"` + effort + `"}`
}

func appendChoice(dst []byte, choice string) []byte {
	switch choice {
	case "", "auto":
		return dst
	case "any":
		return append(dst, `,"toolChoice":{"any":{}}`...)
	}
	dst = append(dst, `,"toolChoice":{"tool":{"name":`...)
	return append(rawjson.AppendString(dst, choice), "}}"...)
}

// encodeTools encodes the elements of the list of tools.
func (m *Model) encodeTools(tools []tenon.Tool) []byte {
	var dst []byte
	for i, t := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"toolSpec":{"name":`...)
		dst = rawjson.AppendString(dst, t.Name)
		if t.Description != "" {
			dst = append(dst, `,"description":`...)
			dst = rawjson.AppendString(dst, t.Description)
		}
		dst = append(dst, `,"inputSchema":{"json":`...)
		dst = append(model.Schema(dst, t.Input), '}')
		dst = append(model.AppendOptions(dst, &t, "bedrock", "name", "description", "inputSchema"), "}}"...)
	}
	if m.quirks.Cache && !strings.Contains(m.cfg.Model, "amazon.nova-") { // Nova caches no tools
		dst = append(dst, ","+cachePoint...)
	}
	return dst
}

// encode returns the blocks of a message, each with a comma before it. If flat is true, calls and results become text
// blocks.
func (m *Model) encode(msg *tenon.Message, flat bool) []byte {
	msg = msg.AsUser()
	reasons := func(p tenon.Part) bool { return p.Type == tenon.PartThinking || p.Type == tenon.PartOpaque }
	if !slices.ContainsFunc(msg.Parts, func(p tenon.Part) bool { return !reasons(p) }) {
		return nil // the API treats an answer with only reasoning as the beginning of the next
	}
	var dst []byte
	nth := 0 // index among the calls or among the results
	text, document := false, false
	for pass := range 2 { // results come first
		for i := range msg.Parts {
			p := &msg.Parts[i]
			if (p.Type == tenon.PartResult) != (pass == 0) {
				continue
			}
			mark := len(dst)
			dst = append(dst, ',')
			if msg.Role == tenon.RoleAssistant && p.Data != "" { // an answer cannot have media in a request
				dst, text = appendText(dst, model.Generated(p)), true
				continue
			}
			switch out := m.appendPart(dst, p, nth, flat); {
			case len(out) == len(dst):
				dst = dst[:mark]
			default:
				dst = out
				text = text || p.Type == tenon.PartText
				document = document || strings.HasPrefix(string(out[mark+1:min(len(out), mark+12)]), `{"document`)
			}
			if p.Type == tenon.PartCall || p.Type == tenon.PartResult {
				nth++
			}
		}
	}
	if document && !text { // the API refuses a document if the message has no text
		dst = appendText(append(dst, ','), "The document.")
	}
	return dst
}

func (m *Model) appendPart(dst []byte, p *tenon.Part, index int, flat bool) []byte {
	if p.Wire == wire && len(p.Raw) > 0 {
		if flat && p.Type == tenon.PartOpaque { // the API refuses uses of tools in a request without tools
			return dst
		}
		return append(dst, p.Raw...)
	}
	switch p.Type {
	case tenon.PartText:
		return appendText(dst, p.Text)
	case tenon.PartImage, tenon.PartFile:
		return m.appendContent(dst, model.ContentOf(p))
	case tenon.PartCall:
		if p.Call == nil {
			return dst
		}
		if flat {
			return appendText(dst, "[called "+p.Call.Name+" with "+string(model.AppendArguments(nil, p.Call))+"]")
		}
		dst = append(dst, `{"toolUse":{"toolUseId":`...)
		dst = rawjson.AppendString(dst, safeID(p.Call.ID, index))
		dst = append(dst, `,"name":`...)
		dst = rawjson.AppendString(dst, p.Call.Name)
		dst = append(dst, `,"input":`...)
		return append(model.AppendArguments(dst, p.Call), "}}"...)
	case tenon.PartResult:
		if p.Result == nil {
			return dst
		}
		if flat {
			return appendText(dst, "[result of "+p.Result.Name+"]\n"+model.ResultText(p.Result))
		}
		return m.appendResult(dst, p.Result, index)
	}
	return dst
}

// appendText appends a text block, or nothing for blank text, which the API refuses.
func appendText(dst []byte, s string) []byte {
	if strings.TrimSpace(s) == "" {
		return dst
	}
	dst = append(dst, `{"text":`...)
	return append(rawjson.AppendString(dst, s), '}')
}

// appendContent appends a content block of a user message or of a tool result.
func (m *Model) appendContent(dst []byte, c tenon.Content) []byte {
	if r, ok := m.cfg.Remote(c); ok {
		dst = append(dst, `{"`+r.Kind+`":{"format":`...)
		dst = rawjson.AppendString(dst, r.Format())
		if r.Kind == model.RemoteDocument {
			dst = rawjson.AppendString(append(dst, `,"name":`...), documentName(c.URI))
		}
		dst = append(dst, `,"source":{"s3Location":{"uri":`...)
		return append(rawjson.AppendString(dst, r.URL), "}}}}"...)
	}
	if mime, data, ok := model.ImageOf(c); ok && m.quirks.Images {
		dst = append(dst, `{"image":{"format":"`+strings.TrimPrefix(mime, "image/")+`","source":{"bytes":`...)
		return append(rawjson.AppendString(dst, data), "}}}"...)
	}
	if name, data, ok := model.DocumentOf(c); ok && m.quirks.Documents {
		dst = append(dst, `{"document":{"format":"pdf","name":`...)
		dst = rawjson.AppendString(dst, documentName(name))
		dst = append(dst, `,"source":{"bytes":`...)
		return append(rawjson.AppendString(dst, data), "}}}"...)
	}
	if mime, data, ok := model.VideoOf(c); ok && m.quirks.Video {
		dst = append(dst, `{"video":{"format":`...)
		dst = rawjson.AppendString(dst, model.Remote{MIME: mime}.Format())
		dst = append(dst, `,"source":{"bytes":`...)
		return append(rawjson.AppendString(dst, data), "}}}"...)
	}
	return appendText(dst, model.Note(c))
}

// documentName returns a name of the characters that the API accepts: letters, digits, single spaces, hyphens,
// parentheses and brackets.
func documentName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-()[]", r) {
			return r
		}
		return ' '
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return cmp.Or(s[:min(len(s), 200)], "document")
}

func (m *Model) appendResult(dst []byte, r *tenon.ToolResult, index int) []byte {
	dst = append(dst, `{"toolResult":{"toolUseId":`...)
	dst = rawjson.AppendString(dst, safeID(r.ID, index))
	if r.IsError {
		dst = append(dst, `,"status":"error"`...)
	}
	dst = append(dst, `,"content":[`...)
	empty := len(dst)
	for _, c := range r.Content {
		mark := len(dst)
		if mark > empty {
			dst = append(dst, ',')
		}
		before := len(dst)
		if dst = m.appendContent(dst, c); len(dst) == before {
			dst = dst[:mark]
		}
	}
	if len(dst) == empty {
		dst = appendText(dst, model.EmptyResult)
	}
	return append(dst, "]}}"...)
}

// safeID converts the call id of another provider to an id that this API accepts: at most 64 letters, digits,
// underscores and hyphens. It shortens a long id at the beginning, because the ends of ids differ more often.
func safeID(id string, index int) string {
	if id == "" {
		return "call_" + strconv.Itoa(index)
	}
	id = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
	return id[max(0, len(id)-64):]
}

// EncodedLen returns the length of the body that Generate would send, for the figures.
func (m *Model) EncodedLen(req *tenon.Request) (int64, error) {
	b, err := m.body(req)
	if err != nil {
		return 0, err
	}
	return b.Len(), nil
}

// EncodeRequest returns a request in this wire format, as for the named model, for tests of its form.
func EncodeRequest(name string, req *tenon.Request) (json.RawMessage, error) {
	b, err := newModel(model.Config{Provider: "bedrock", Model: name}.WithDefaults()).body(req)
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
