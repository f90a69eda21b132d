package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestRemoteMedia: an address or a file id has the form of each wire, and a note says what a model does not read.
func TestRemoteMedia(t *testing.T) {
	openAI := model.Config{Provider: "openai", Model: "gpt-5"}
	claude, nova := model.Config{Model: "claude-sonnet-4-5"}, model.Config{Provider: "bedrock", Model: "amazon.nova-2-lite-v1:0"}
	flash := model.Config{Provider: "gemini", Model: "gemini-2.5-flash"}
	const a = "https://example.com/a"
	for _, c := range []struct {
		name, wire string
		cfg        model.Config
		mime, uri  string
		want       string
	}{
		{"MD-7_chat_image", "chat", openAI, "image/png", a, `{"type":"image_url","image_url":{"url":"` + a + `"}}`},
		{"MD-7_chat_id", "chat", openAI, "application/pdf", "file-id:f1", `{"type":"file","file":{"file_id":"f1"}}`},
		{"MD-7_chat_pdf", "chat", openAI, "application/pdf", a, `[document at ` + a + `: this model does not read it]`},
		{"MD-7_responses_image", "responses", openAI, "image/png", a, `{"type":"input_image","image_url":"` + a + `"}`},
		{"MD-7_responses_image_id", "responses", openAI, "image/png", "file-id:f1", `{"type":"input_image","file_id":"f1"}`},
		{"MD-7_responses_pdf", "responses", openAI, "application/pdf", a, `{"type":"input_file","file_url":"` + a + `"}`},
		{"MD-7_responses_id", "responses", openAI, "application/pdf", "file-id:f1", `{"type":"input_file","file_id":"f1"}`},
		{"MD-7_anthropic_image", "anthropic", claude, "image/png", a, `{"type":"image","source":{"type":"url","url":"` + a + `"}}`},
		{"MD-7_anthropic_pdf", "anthropic", claude, "application/pdf", a, `{"type":"document","source":{"type":"url","url":"` + a + `"}}`},
		{"MD-7_anthropic_id", "anthropic", claude, "application/pdf", "file-id:f1", `{"type":"document","source":{"type":"file","file_id":"f1"}}`},
		{"MD-7_anthropic_video", "anthropic", claude, "video/mp4", a, `[video at ` + a + `: this model does not read it]`},
		{"MD-7_gemini_youtube", "gemini", flash, "video/mp4", "https://youtu.be/x", `{"fileData":{"mimeType":"video/mp4","fileUri":"https://youtu.be/x"}}`},
		{"MD-7_gemini_gs", "gemini", flash, "", "gs://b/a", `{"fileData":{"fileUri":"gs://b/a"}}`},
		{"MD-7_bedrock_video", "bedrock", nova, "video/mp4", "s3://b/a", `{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://b/a"}}}}`},
		{"MD-7_bedrock_web", "bedrock", nova, "image/png", a, `[image at ` + a + `: this model does not read it]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := tenon.Part{Type: tenon.PartFile, MimeType: c.mime, URI: c.uri}
			if strings.HasPrefix(c.mime, "image/") {
				p.Type = tenon.PartImage
			}
			got := settingsSent(t, c.wire, c.cfg, &tenon.Request{Messages: []*tenon.Message{{Role: tenon.RoleUser,
				Parts: []tenon.Part{{Type: tenon.PartText, Text: "q"}, p}}}})
			if !json.Valid([]byte(got)) || strings.Count(got, c.want) != 1 {
				t.Errorf("%s is not once in %s", c.want, got)
			}
		})
	}
}

// TestFileIDBeta: MD-7, Anthropic's files need a header.
func TestFileIDBeta(t *testing.T) {
	with := func(uri string) *tenon.Request {
		return &tenon.Request{Messages: []*tenon.Message{{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartImage, URI: uri}}}}}
	}
	cfg := model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5"}
	if got := cfg.Betas(with("file-id:f1")); len(got) != 1 || got[0] != "files-api-2025-04-14" {
		t.Errorf("got %v", got)
	}
	if got := cfg.Betas(with("https://example.com/a")); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
