package openai

import (
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// items encodes messages as input items of the Responses API.
type items struct {
	images    bool
	documents bool
	encrypted bool
	plain     bool         // the server accepts reasoning that is not encrypted
	system    bool         // the conversation may contain messages of role system
	search    bool         // the server supports tool search
	tools     []tenon.Tool // the tools of the request
	remote    func(tenon.Content) (model.Remote, bool)
}

// message returns the items of a message with a leading comma each, or nothing if the message has
// no form on this wire.
func (e items) message(msg *tenon.Message) ([]byte, error) {
	switch msg.Role {
	case tenon.RoleAssistant:
		return e.assistant(msg), nil
	case tenon.RoleTool:
		return e.results(msg), nil
	case tenon.RoleSystem:
		if e.system {
			return append(rawjson.AppendString([]byte(`,{"role":"system","content":`), msg.Text()), '}'), nil
		}
	}
	return e.user(nil, msg.AsUser().Parts), nil
}

// assistant sends the items of an answer back unchanged and in order. An item may refer to a reasoning item by its id,
// and the provider refuses it if that reasoning is missing. So if a thought cannot be sent back because it is not
// encrypted, assistant sends the other items of the turn without their ids.
func (e items) assistant(msg *tenon.Message) []byte {
	whole := true
	for i := range msg.Parts {
		if p := &msg.Parts[i]; p.Type == tenon.PartThinking && !e.canReturn(p) {
			whole = false
		}
	}
	var dst []byte
	nth := 0
	for i := range msg.Parts {
		p := &msg.Parts[i]
		own := p.Wire == model.WireResponses && len(p.Raw) > 0
		switch {
		case own && p.Data != "":
			dst = model.WithData(append(dst, ','), p, "result")
		case p.Data != "":
			dst = append(dst, `,{"role":"assistant","content":`...)
			dst = append(rawjson.AppendString(dst, model.Generated(p)), '}')
		case p.Type == tenon.PartThinking:
			if e.canReturn(p) {
				dst = append(append(dst, ','), p.Raw...)
			}
		case p.Type == tenon.PartCall && p.Call != nil:
			switch search := isSearch(p.Call.ID); {
			case p.Call.Connector != nil && isApproval(p.Call.ID):
				dst = appendApprovalRequest(dst, p, own)
			case own && whole && (e.search || !search):
				dst = append(append(dst, ','), p.Raw...)
			case e.search && search:
				dst = appendSearchCall(dst, p.Call)
			default:
				dst = appendItemCall(dst, p.Call, nth)
			}
			nth++
		case own && (whole || p.Type == tenon.PartOpaque):
			dst = append(append(dst, ','), p.Raw...)
		case p.Type == tenon.PartText && strings.TrimSpace(p.Text) != "":
			dst = append(dst, `,{"role":"assistant","content":`...)
			dst = append(rawjson.AppendString(dst, p.Text), '}')
		}
	}
	return dst
}

// canReturn reports whether a thought is an item that the provider can read: it is encrypted, or the server shows its
// whole text, as servers of open models do.
func (e items) canReturn(p *tenon.Part) bool {
	if p.Wire != model.WireResponses {
		return false
	}
	if rawjson.StringBody(rawjson.Field(p.Raw, "encrypted_content")) != nil {
		return true
	}
	for range rawjson.Elements(rawjson.Field(p.Raw, "content")) {
		return e.plain
	}
	return false
}

func appendItemCall(dst []byte, c *tenon.ToolCall, nth int) []byte {
	dst = append(dst, `,{"type":"function_call","call_id":`...)
	dst = rawjson.AppendString(dst, callID(c.ID, nth))
	dst = append(dst, `,"name":`...)
	dst = rawjson.AppendString(dst, c.Name)
	dst = append(dst, `,"arguments":`...)
	dst = rawjson.AppendString(dst, string(model.AppendArguments(nil, c)))
	return append(dst, '}')
}

func (e items) results(msg *tenon.Message) []byte {
	var dst []byte
	nth := 0
	for i := range msg.Parts {
		r := msg.Parts[i].Result
		if r == nil {
			continue
		}
		if e.search && isSearch(r.ID) {
			dst = e.found(dst, r)
			nth++
			continue
		}
		if isApproval(r.ID) {
			dst = appendApproval(dst, r)
			nth++
			continue
		}
		dst = append(dst, `,{"type":"function_call_output","call_id":`...)
		dst = rawjson.AppendString(dst, callID(r.ID, nth))
		dst = append(dst, `,"output":`...)
		dst = append(e.output(dst, r), '}')
		nth++
	}
	return e.user(dst, partsOf(msg))
}

// output appends a result: a text, or a list if it contains images or documents.
func (e items) output(dst []byte, r *tenon.ToolResult) []byte {
	plain := true
	for _, c := range r.Content {
		if e.media(c) {
			plain = false
		}
	}
	if plain {
		return rawjson.AppendString(dst, model.FailureText(r, model.ResultText(r)))
	}
	mark := len(dst)
	if r.IsError && (r.Content[0].Type != tenon.ContentText || !strings.HasPrefix(r.Content[0].Text, "Error")) {
		dst = e.block(append(dst, ','), tenon.Text("Error:"))
	}
	for _, c := range r.Content {
		if c.Type != tenon.ContentText || c.Text != "" {
			dst = e.block(append(dst, ','), c)
		}
	}
	dst[mark] = '['
	return append(dst, ']')
}

// media reports whether a block is sent as an image or a file. All other blocks are sent as text.
func (e items) media(c tenon.Content) bool {
	_, _, image := model.ImageOf(c)
	_, _, document := model.DocumentOf(c)
	return image && e.images || document && e.documents
}

// user appends a user message with the parts.
func (e items) user(dst []byte, parts []tenon.Part) []byte {
	blocks := userBlocks(parts)
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
		dst = append(dst, sep)
		if c.Type == tenon.ContentText { // no Visible: the user's text stays unchanged
			dst = append(dst, `{"type":"input_text","text":`...)
			dst = append(rawjson.AppendString(dst, c.Text), '}')
			continue
		}
		dst = e.block(dst, c)
	}
	return append(dst, "]}"...)
}

func (e items) block(dst []byte, c tenon.Content) []byte {
	if r, ok := e.remote(c); ok {
		head, member, value := `{"type":"input_file",`, `"file_id":`, r.ID
		if r.Kind == model.RemoteImage {
			head = `{"type":"input_image",`
		}
		switch {
		case r.ID == "" && r.Kind == model.RemoteImage:
			member, value = `"image_url":`, r.URL
		case r.ID == "":
			member, value = `"file_url":`, r.URL
		}
		return append(rawjson.AppendString(append(append(dst, head...), member...), value), '}')
	}
	if mime, data, image := model.ImageOf(c); image && e.images {
		dst = append(dst, `{"type":"input_image","image_url":`...)
		return append(rawjson.AppendString(dst, "data:"+mime+";base64,"+data), '}')
	}
	if name, data, document := model.DocumentOf(c); document && e.documents {
		dst = append(dst, `{"type":"input_file","filename":`...)
		dst = rawjson.AppendString(dst, name)
		dst = append(dst, `,"file_data":`...)
		return append(rawjson.AppendString(dst, "data:application/pdf;base64,"+data), '}')
	}
	dst = append(dst, `{"type":"input_text","text":`...)
	return append(rawjson.AppendString(dst, model.Note(c)), '}')
}
