package model_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestAudioInAResult checks that audio is sent in the best form that each wire format has.
func TestAudioInAResult(t *testing.T) {
	t.Run("HD-US3.3 inline for Gemini, a note with type, size and artifact for Anthropic", func(t *testing.T) {
		req := &tenon.Request{Messages: []*tenon.Message{results(&tenon.ToolResult{ID: "c1", Content: []tenon.Content{
			{Type: tenon.ContentAudio, MimeType: "audio/wav", Data: "aGk=", Artifact: "3f9a2c-1.0-0"}}})}}
		if got, want := sent(t, "gemini", model.Config{}, req), `{"inlineData":{"mimeType":"audio/wav","data":"aGk="}}`; !strings.Contains(got, want) {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
		if got, want := sent(t, "anthropic", model.Config{}, req), `[audio audio/wav 2 bytes, saved as 3f9a2c-1.0-0]`; !strings.Contains(got, want) {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	})
}
