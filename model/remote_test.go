package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestRemoteMedia checks that a URL or a file id is sent in the form of each wire. If the model cannot read it, a note
// is sent in its place.
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
		{"MD-7_local_image", "chat", model.Config{Provider: "lmstudio", Model: "gemma-3"}, "image/png", a, `[image at ` + a + `: this model does not read it]`},
		{"MD-7_ollama_image", "ollama", model.Config{Provider: "ollama", API: "ollama", Model: "gemma3"}, "image/png", a, `[image at ` + a + `: this model does not read it]`},
		{"MD-7_chat_image_id", "chat", openAI, "image/png", "file-id:f1", `[image omitted: this model does not take the file id f1]`},
		{"MD-7_gemini_id", "gemini", flash, "application/pdf", "file-id:files/f1", `{"fileData":{"mimeType":"application/pdf","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/f1"}}`},
		{"MD-7_gemini_web", "gemini", flash, "image/png", a, `{"fileData":{"mimeType":"image/png","fileUri":"` + a + `"}}`},
		{"MD-7_gemini_old", "gemini", model.Config{Provider: "gemini", Model: "gemini-2.0-flash"}, "image/png", a, `[image at ` + a + `: this model does not read it]`},
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

// TestVideo: MD-7, a video is sent inline to the models that accept it, and others get a note.
func TestVideo(t *testing.T) {
	part := tenon.Part{Type: tenon.PartFile, MimeType: "video/quicktime", Data: "AAAA", Text: "a.mov"}
	req := &tenon.Request{Messages: []*tenon.Message{{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "q"}, part}}}}
	for wire, c := range map[string]struct {
		cfg  model.Config
		want string
	}{
		"gemini":    {model.Config{Provider: "gemini", Model: "gemini-3-pro"}, `{"inlineData":{"mimeType":"video/quicktime","data":"AAAA"}}`},
		"bedrock":   {model.Config{Provider: "bedrock", Model: "amazon.nova-2-lite-v1:0"}, `{"video":{"format":"mov","source":{"bytes":"AAAA"}}}`},
		"anthropic": {model.Config{Model: "claude-sonnet-4-5"}, `[resource a.mov video/quicktime 3 bytes]`},
		"chat":      {model.Config{Provider: "openai", Model: "gpt-5"}, `[resource a.mov video/quicktime 3 bytes]`},
	} {
		t.Run("MD-7_"+wire, func(t *testing.T) {
			if got := settingsSent(t, wire, c.cfg, req); strings.Count(got, c.want) != 1 {
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
