package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// Test_MD10_List checks the lists of models of each wire format, their pages, and failures.
func Test_MD10_List(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     model.Config
		replies []reply
		want    string // the list and the paths, or a part of the error
	}{
		"openai": {model.Config{Provider: "openai"}, []reply{{body: `{"object":"list","data":[{"id":"z","owned_by":"openai"},{"id":"a"}]}`}},
			"[{a   0} {z  openai 0}] /v1/models"},
		"context sizes": {model.Config{Provider: "openrouter"}, []reply{{body: `{"data":[{"id":"a","name":"A","context_length":1},{"id":"b","context_window":2},{"id":"c","max_model_len":3}]}`}},
			"[{a A  1} {b   2} {c   3}] /api/v1/models/user"},
		"a proxy of OpenRouter": {model.Config{Provider: "openrouter", BaseURL: "https://eu.openrouter.ai/api/v1"}, []reply{{status: 404, body: `{}`}, {body: `{"data":[{"id":"a"}]}`}},
			"[{a   0}] /api/v1/models/user /api/v1/models"},
		"a refused key": {model.Config{Provider: "openrouter"}, []reply{{status: 401, body: `{"error":{"message":"no"}}`}}, "auth_required: openrouter/none: HTTP 401: no"},
		"a bare list":   {model.Config{Provider: "openai-compatible", BaseURL: "http://x/v1"}, []reply{{body: `[{"id":"a"}]`}}, "[{a   0}] /v1/models"},
		"anthropic": {model.Config{Provider: "anthropic"}, []reply{{body: `{"data":[{"id":"a","display_name":"A"}],"has_more":true,"last_id":"a"}`},
			{body: `{"data":[{"id":"b"}],"has_more":false}`}}, "[{a A  0} {b   0}] /v1/models /v1/models"},
		"gemini": {model.Config{Provider: "gemini"}, []reply{{body: `{"models":[{"name":"models/a","displayName":"A","inputTokenLimit":9}],"nextPageToken":"n"}`},
			{body: `{"models":[{"name":"models/b"}]}`}}, "[{a A  9} {b   0}] /v1beta/models /v1beta/models"},
		"wrong key":     {model.Config{Provider: "openai"}, []reply{{status: 401, body: `{"error":{"message":"no"}}`}}, "auth_required: openai/none: HTTP 401: no"},
		"no such route": {model.Config{Provider: "openai"}, []reply{{status: 404}}, "check models.m.model and models.m.base_url"},
		"no list":       {model.Config{Provider: "openai"}, []reply{{body: `"x"`}}, "protocol: openai/none: HTTP 200: the answer is not a list of models"},
		"bedrock":       {model.Config{Provider: "bedrock", Region: "us-east-1"}, nil, "config: provider bedrock has no route"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{replies: c.replies}
			c.cfg.Name, c.cfg.APIKey = "m", tenon.NewSecret("k")
			list, err := model.List(t.Context(), c.cfg, p.env())
			got := strings.Join(append([]string{fmt.Sprint(list)}, p.paths...), " ")
			if err != nil {
				got = fmt.Sprintf("%s: %v", tenon.ErrorCode(err), err)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Test_MD10_Pull checks the progress and the failures of a download.
func Test_MD10_Pull(t *testing.T) {
	const begin = `{"status":"pulling manifest"}` + "\n" + `{"status":"pulling a","total":10,"completed":4}` + "\n"
	for name, c := range map[string]struct {
		reply reply
		want  string
	}{
		"whole":    {reply{body: begin + `{"status":"success"}` + "\n"}, "pulling manifest 0/0, pulling a 4/10, success 0/0, /api/pull"},
		"no model": {reply{body: `{"error":"pull model manifest: file does not exist"}`}, "model_error: ollama/llama: pull model manifest: file does not exist"},
		"cut off":  {reply{body: begin}, "the answer was cut off: the stream ended before success"},
		"broken":   {reply{body: begin, cut: true}, "the connection broke during the download"},
		"not JSON": {reply{body: "<html>"}, "protocol: ollama/llama: an event of the answer is not JSON"},
		"long":     {reply{body: strings.Repeat("x", 1<<20)}, "the connection broke during the download"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{replies: []reply{c.reply}}
			got := ""
			err := model.Pull(t.Context(), model.Config{Name: "m", Provider: "ollama", Model: "llama"}, p.env(), func(x model.Pulled) {
				got += fmt.Sprintf("%s %d/%d, ", x.Status, x.Done, x.Total)
			})
			got += strings.Join(p.paths, " ")
			if err != nil {
				got = fmt.Sprintf("%s: %v", tenon.ErrorCode(err), err)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if err := model.Pull(t.Context(), model.Config{Provider: "openai", Model: "m"}, model.Env{}, nil); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("another provider: %v", err)
	}
}
