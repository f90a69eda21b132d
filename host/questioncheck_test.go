package host_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// TestMalformedQuestion checks that a question with a malformed history or file is refused with what to do.
func TestMalformedQuestion(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	call := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartCall,
		Call: &tenon.ToolCall{ID: "c", Name: "x", Arguments: json.RawMessage("{}")}}}}
	result := &tenon.Message{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult,
		Result: &tenon.ToolResult{ID: "c", Name: "x", Content: []tenon.Content{tenon.Text("y")}}}}}
	user := tenon.UserMessage("before")
	for name, tt := range map[string]struct {
		q    host.Question
		says string // "": the question is answered
	}{
		"RP-16_nil_message":    {host.Question{History: []*tenon.Message{user, nil}}, "History[1] is nil"},
		"RP-16_role":           {host.Question{History: []*tenon.Message{{Role: "zz", Parts: user.Parts}}}, "must be user, assistant, tool or system"},
		"RP-16_no_parts":       {host.Question{History: []*tenon.Message{{Role: tenon.RoleUser}}}, "leave it out"},
		"RP-16_no_call":        {host.Question{History: []*tenon.Message{{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartCall}}}}}, "Parts[0] of History[0] is empty"},
		"RP-16_no_result":      {host.Question{History: []*tenon.Message{user, call}}, "one result for each call"},
		"RP-16_result_missing": {host.Question{History: []*tenon.Message{user, call, user}}, "one result for each call"},
		"RP-16_history":        {host.Question{History: []*tenon.Message{user, call, result, tenon.AssistantMessage("z")}}, ""},
		"RP-16_empty_file":     {host.Question{Files: []tenon.Part{{}}}, "host.FilePart"},
		"RP-16_no_base64":      {host.Question{Files: []tenon.Part{{Type: tenon.PartImage, MimeType: "image/png", Data: "!!"}}}, "not base64"},
		"RP-16_no_type":        {host.Question{Files: []tenon.Part{{Type: tenon.PartImage, Data: "aGk="}}}, "MimeType"},
		"RP-16_no_data":        {host.Question{Files: []tenon.Part{{Type: tenon.PartFile, MimeType: "application/pdf"}}}, "neither Data nor a URI"},
		"RP-16_address":        {host.Question{Files: []tenon.Part{{Type: tenon.PartImage, MimeType: "image/png", URI: "/etc/passwd"}}}, "https://"},
		"RP-16_call_as_file":   {host.Question{Files: []tenon.Part{{Type: tenon.PartCall}}}, "is no file"},
		"RP-16_empty_text":     {host.Question{Files: []tenon.Part{{Type: tenon.PartText}}}, "empty text"},
		"RP-16_text":           {host.Question{Files: []tenon.Part{{Type: tenon.PartText, Text: "File a.txt:\n\nhi"}}}, ""},
		"RP-16_nil_data":       {host.Question{DataFiles: []*io.SectionReader{nil}}, "DataFiles[0] is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.q.Text = "What is the weather in London?"
			_, err := host.Ask(t.Context(), h, tt.q)
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("%s: %v", tenon.ErrorCode(err), err)
			}
		})
	}
	t.Run("RP-16_reopen_nil", func(t *testing.T) {
		if next, err := h.Reopen(nil); tenon.ErrorCode(err) != tenon.CodeInvalid || next != nil {
			t.Error(next, err)
		}
	})
}
