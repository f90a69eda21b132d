package table

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
)

func TestConversation(t *testing.T) {
	call := func(id, name, args string) tenon.Part {
		return tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}}
	}
	result := func(id, name string, content ...tenon.Content) tenon.Part {
		return tenon.Part{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: id, Name: name, Content: content}}
	}
	png := tenon.Part{Type: tenon.PartImage, MimeType: "image/png", Data: "iVBORw0KGgo="}
	said := []*tenon.Message{
		{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "Look – at this"}, png}},
		{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "I do."}, call("c1", "read.file", `{"n":9007199254740993}`), call("c2", "add", `{}`)}},
		{Role: tenon.RoleTool, Parts: []tenon.Part{result("c1", "read.file", tenon.Text("a"), tenon.Content{Type: tenon.ContentImage, MimeType: "image/png", Data: "iVBORw0KGgo="}),
			result("c2", "add", []tenon.Content{}...)}},
		{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "Done."}}},
	}
	said[2].Parts[1].Result.Content = []tenon.Content{}
	path := filepath.Join(t.TempDir(), "c.arrow")
	if err := WriteConversation(t.Context(), path, said, Failure{}, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	r := read(t, path)
	got, err := r.Conversation(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(said, got, cmpopts.IgnoreUnexported(tenon.Message{})); diff != "" {
		t.Error(diff)
	}
	if n, _, err := read(t, path).Count(t.Context()); err != nil || n != 5 {
		t.Errorf("%d rows, %v; each result is one", n, err)
	}
	// Content without a form is omitted or described in text.
	odd := []*tenon.Message{{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartThinking, Text: "hm"}, {Type: tenon.PartImage, MimeType: "image/jpeg", Data: "AA=="},
		{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "c", Name: "x", Malformed: `{"a":`}}}}}
	if err := WriteConversation(t.Context(), path, odd, Failure{}, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err = read(t, path).Conversation(t.Context(), ConversationColumn)
	want := []*tenon.Message{{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "[image image/jpeg]"},
		{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "c", Name: "x", Malformed: `{"a":`}}}}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(tenon.Message{})); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := read(t, path).Conversation(t.Context(), "Other"); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("%v", err)
	}
	if err := WriteConversation(t.Context(), path, []*tenon.Message{{Role: "narrator"}}, Failure{}, WriteOptions{}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("%v", err)
	}
}

func TestConversationFailure(t *testing.T) {
	said := []*tenon.Message{tenon.UserMessage("hi")}
	path := filepath.Join(t.TempDir(), "c.arrow")
	for _, f := range []Failure{{"Errors", "it failed"}, {"What went wrong", "it failed"}, {"Errors", ""}, {"", "has no place"}} {
		if err := WriteConversation(t.Context(), path, said, f, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := read(t, path).Conversation(t.Context(), "")
		if diff := cmp.Diff(said, got, cmpopts.IgnoreUnexported(tenon.Message{})); diff != "" || err != nil {
			t.Errorf("%v: %v %s", f, err, diff)
		}
	}
	if err := WriteConversation(t.Context(), path, said, Failure{ConversationColumn, "x"}, WriteOptions{}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("%v", err)
	}
}

// TestConversationBound checks that every result counts as a message, although the results of a
// turn become one message.
func TestConversationBound(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{logical(ConversationColumn, ClassMessage, messageStorage())}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for range maxMessages + 1 {
		appendMessage(b.Field(0).(*array.StructBuilder), cell{role: roleTool, callID: "1"})
	}
	path := rawBatch(t, "c.arrow", b.NewRecordBatch())
	if _, err := read(t, path).Conversation(t.Context(), ""); tenon.ErrorCode(err) != tenon.CodeTooLarge {
		t.Errorf("%v", err)
	}
}

// TestConversationErrors reads the column Errors next to the messages.
func TestConversationErrors(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{logical(ConversationColumn, ClassMessage, messageStorage()), {Name: ErrorsColumn, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for name, test := range map[string]struct {
		message, failure string
		role, kind       string
		want             string
	}{
		"message":  {"hi", "", roleUser, "text", ""},
		"error":    {"", "it failed", roleUser, "text", ""},
		"both":     {"hi", "it failed", roleUser, "text", "Conversation table contains row with both message and error. Row index: 0"},
		"nothing":  {"", "", roleUser, "text", "Conversation table contains empty row. Row index: 0"},
		"role":     {"hi", "", "SYSTEM", "text", "USER, AI or TOOL, not 'SYSTEM'"},
		"contents": {"hi", "", roleUser, "wav", "neither text nor png"},
	} {
		t.Run(name, func(t *testing.T) {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			if test.message == "" {
				b.Field(0).AppendNull()
			} else {
				appendMessage(b.Field(0).(*array.StructBuilder), cell{role: test.role, content: []piece{{test.kind, []byte(test.message)}}})
			}
			if test.failure == "" {
				b.Field(1).AppendNull()
			} else {
				b.Field(1).(*array.StringBuilder).Append(test.failure)
			}
			path := rawBatch(t, "c.arrow", b.NewRecordBatch())
			_, err := read(t, path).Conversation(t.Context(), "")
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// TestConversationStorage reads messages in which other programs store contents in other types. No
// content may be dropped silently.
func TestConversationStorage(t *testing.T) {
	for _, tt := range []struct {
		data arrow.DataType
		json string
		err  string
	}{
		{arrow.BinaryTypes.LargeBinary, `"aGVsbG8="`, ""},
		{arrow.BinaryTypes.Binary, `"aGVsbG8="`, ""},
		{arrow.BinaryTypes.BinaryView, `"aGVsbG8="`, ""},
		{arrow.BinaryTypes.String, `"hello"`, ""},
		{arrow.BinaryTypes.LargeString, `"hello"`, ""},
		{arrow.BinaryTypes.StringView, `"hello"`, ""},
		{arrow.PrimitiveTypes.Int64, `7`, "row 0, column 'Conversation': field 1 is stored as list<item: struct<"},
	} {
		t.Run(tt.data.Name(), func(t *testing.T) {
			text := arrow.BinaryTypes.String
			f := logical(ConversationColumn, ClassMessage, fields(text, arrow.ListOf(fields(text, tt.data)), arrow.ListOf(fields(text, text, text)), text, text))
			got, err := jsonTable(t, []arrow.Field{f}, `[{"Conversation":{"0":"USER","1":[{"0":"text","1":`+tt.json+`}]}}]`).Conversation(t.Context(), "")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0].Text() != "hello" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
