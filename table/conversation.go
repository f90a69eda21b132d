package table

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// The columns of a conversation.
const (
	ConversationColumn = "Conversation"
	ErrorsColumn       = "Errors"
)

// The roles of a message as a table stores them.
const (
	roleUser = "USER"
	roleAI   = "AI"
	roleTool = "TOOL"
)

// messageStorage returns the struct type of a message.
func messageStorage() *arrow.StructType {
	text := arrow.BinaryTypes.String
	content := fields(text, arrow.BinaryTypes.LargeBinary)
	calls := fields(text, text, text)
	return fields(text, list(content), list(calls), text, text)
}

// cell is a message in the form that a table stores. Each result of a tool is a separate message.
type cell struct {
	role, callID, name string
	content            []piece
	calls              []tenon.ToolCall
}

type piece struct {
	kind string // text or png
	data []byte
}

// cells converts a message. It omits content that a table cannot represent, such as reasoning and
// provider-specific blocks.
func cells(m *tenon.Message) ([]cell, error) {
	m = m.AsUser() // a table has no such messages
	switch m.Role {
	case tenon.RoleTool:
		var out []cell
		for _, p := range m.Parts {
			if p.Result == nil {
				continue
			}
			c := cell{role: roleTool, callID: p.Result.ID, name: p.Result.Name}
			for _, b := range p.Result.Content {
				k, err := contentPiece(b.Type, b.Text, b.MimeType, b.Data)
				if err != nil {
					return nil, err
				}
				if k != nil {
					c.content = append(c.content, *k)
				}
			}
			out = append(out, c)
		}
		return out, nil
	case tenon.RoleUser, tenon.RoleAssistant:
		c := cell{role: map[tenon.Role]string{tenon.RoleUser: roleUser, tenon.RoleAssistant: roleAI}[m.Role]}
		for _, p := range m.Parts {
			if p.Type == tenon.PartCall && p.Call != nil {
				c.calls = append(c.calls, *p.Call)
				continue
			}
			k, err := contentPiece(p.Type, p.Text, p.MimeType, p.Data)
			if err != nil {
				return nil, err
			}
			if k != nil {
				c.content = append(c.content, *k)
			}
		}
		return []cell{c}, nil
	}
	return nil, fmt.Errorf("a message of role '%s' cannot be stored", m.Role)
}

// contentPiece converts a part of a message. It returns nil for a part that a table cannot
// represent.
func contentPiece(kind, text, mimeType, data string) (*piece, error) {
	switch {
	case kind == tenon.PartText:
		return &piece{"text", []byte(text)}, nil
	case kind == tenon.PartImage && mimeType == "image/png":
		b, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, fmt.Errorf("an image is not base64: %w", err)
		}
		return &piece{"png", b}, nil
	case kind == tenon.PartImage:
		return &piece{"text", []byte("[image " + mimeType + "]")}, nil
	}
	return nil, nil
}

// Failure is the error at the end of a conversation, with the column for it. If Column is empty, the table has no
// column for errors. If Text is empty, there was no error.
type Failure struct{ Column, Text string }

// WriteConversation writes a table of messages, one per row. Each result of a tool has its own row. If there is a
// failure, it is the last row, in its own column. Errors: invalid, store.
func WriteConversation(ctx context.Context, path string, messages []*tenon.Message, f Failure, o WriteOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	all := []arrow.Field{
		{Name: RowID, Type: arrow.BinaryTypes.String},
		logical(ConversationColumn, ClassMessage, messageStorage()),
	}
	if f.Column != "" {
		if f.Column == RowID || f.Column == ConversationColumn {
			return invalid("the column %s cannot contain errors; choose another name", f.Column)
		}
		all = append(all, arrow.Field{Name: f.Column, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	schema := arrow.NewSchema(all, nil)
	w, err := create(ctx, path, schema, nil, o)
	if err != nil {
		return err
	}
	defer w.abort()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	row := 0
	for i, m := range messages {
		list, err := cells(m)
		if err != nil {
			return invalid("%s: message %d: %w", path, i+1, err)
		}
		for _, c := range list {
			b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("Row%d", row))
			row++
			appendMessage(b.Field(1).(*array.StructBuilder), c)
			if f.Column != "" {
				b.Field(2).AppendNull()
			}
		}
	}
	if f.Text != "" && f.Column != "" {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("Row%d", row))
		b.Field(1).AppendNull()
		b.Field(2).(*array.StringBuilder).Append(f.Text)
	}
	if err := w.write(ctx, b.NewRecordBatch()); err != nil {
		return err
	}
	return w.commit()
}

func appendMessage(b *array.StructBuilder, c cell) {
	str := func(i int, s string) {
		f := b.FieldBuilder(i).(*array.StringBuilder)
		if s == "" {
			f.AppendNull()
		} else {
			f.Append(s)
		}
	}
	b.Append(true)
	b.FieldBuilder(0).(*array.StringBuilder).Append(c.role)
	parts := b.FieldBuilder(1).(*array.ListBuilder)
	parts.Append(true)
	part := parts.ValueBuilder().(*array.StructBuilder)
	for _, p := range c.content {
		part.Append(true)
		part.FieldBuilder(0).(*array.StringBuilder).Append(p.kind)
		part.FieldBuilder(1).(*array.BinaryBuilder).Append(p.data)
	}
	calls := b.FieldBuilder(2).(*array.ListBuilder)
	if len(c.calls) == 0 {
		calls.AppendNull()
	} else {
		calls.Append(true)
	}
	call := calls.ValueBuilder().(*array.StructBuilder)
	for _, k := range c.calls {
		args := string(k.Arguments)
		args = cmp.Or(k.Malformed, args)
		call.Append(true)
		for i, s := range []string{k.ID, k.Name, args} {
			call.FieldBuilder(i).(*array.StringBuilder).Append(s)
		}
	}
	str(3, c.callID)
	str(4, c.name)
}

// maxMessages bounds the messages of a conversation. Each result of a tool counts as a message.
const maxMessages = 100_000

// Conversation reads the messages in the remaining rows. column is the name of the column; "" is
// the last message column. It skips rows with an error and no message. The errors are in the column
// Errors, or in the only text column. The results of one turn become one message. Errors: invalid,
// with KNIME's texts for rows that have both a message and an error, or neither.
func (r *Reader) Conversation(ctx context.Context, column string) ([]*tenon.Message, error) {
	at, failures, texts := -1, -1, 0
	for i, c := range r.columns {
		if c.IsMessage() && (column == "" || c.Name == column) {
			at = i
		}
		if c.Type != "utf8" || c.Logical != "" {
			continue
		}
		if texts++; c.Name == ErrorsColumn || texts == 1 {
			failures = i
		}
	}
	if texts > 1 && r.columns[failures].Name != ErrorsColumn {
		failures = -1 // several text columns, and none has the name Errors
	}
	if at < 0 && column != "" {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s has no column '%s' of messages", r.name, column)
	}
	if at < 0 {
		return nil, invalid("%s has no column of messages", r.name)
	}
	var out []*tenon.Message
	count := 0
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		failed := failures >= 0 && row.rec.Column(r.columns[failures].at).IsValid(row.at)
		there := row.rec.Column(r.columns[at].at).IsValid(row.at)
		switch {
		case there && failed:
			return nil, invalid("Conversation table contains row with both message and error. Row index: %d", row.Index)
		case !there && !failed:
			return nil, invalid("Conversation table contains empty row. Row index: %d", row.Index)
		case !there:
			continue
		case count >= maxMessages:
			return nil, tenon.Errorf(tenon.CodeTooLarge, "%s has more than %d messages", r.name, maxMessages)
		}
		count++
		raw, err := row.Value(r.columns[at], false)
		if err != nil {
			return nil, err
		}
		m, err := message(raw)
		if err != nil {
			return nil, invalid("%s: row %d, column '%s': %w", r.name, row.Index, r.columns[at].Name, err)
		}
		if n := len(out); n > 0 && m.Role == tenon.RoleTool && out[n-1].Role == tenon.RoleTool {
			out[n-1] = &tenon.Message{Role: tenon.RoleTool, Parts: append(out[n-1].Parts, m.Parts...)}
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// message converts the JSON of a cell to a message.
func message(raw json.RawMessage) (*tenon.Message, error) {
	var c messageCell
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	m := &tenon.Message{}
	var content []tenon.Content
	for _, p := range c.Content {
		switch p.Type {
		case "text":
			m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartText, Text: p.Text})
			content = append(content, tenon.Text(p.Text))
		case "png":
			m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartImage, MimeType: "image/png", Data: p.Data})
			content = append(content, tenon.Content{Type: tenon.ContentImage, MimeType: "image/png", Data: p.Data})
		default:
			return nil, fmt.Errorf("content of type '%s' is neither text nor png", p.Type)
		}
	}
	switch c.Role {
	case roleUser:
		m.Role = tenon.RoleUser
	case roleAI:
		m.Role = tenon.RoleAssistant
		for _, k := range c.Calls {
			call := &tenon.ToolCall{ID: k.ID, Name: k.Name, Arguments: k.Arguments}
			var text string
			if json.Unmarshal(k.Arguments, &text) == nil {
				call.Arguments, call.Malformed = nil, text
			}
			m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartCall, Call: call})
		}
	case roleTool:
		m.Role = tenon.RoleTool
		if content == nil {
			content = []tenon.Content{}
		}
		result := &tenon.ToolResult{ID: c.CallID, Name: c.Name, Content: content}
		m.Parts = []tenon.Part{{Type: tenon.PartResult, Result: result}}
	default:
		return nil, errors.New("the role of a message is USER, AI or TOOL, not '" + tenon.Visible(c.Role) + "'")
	}
	return m, nil
}
