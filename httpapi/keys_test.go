package httpapi_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/httpapi"
)

// keptKeys are keys in memory.
type keptKeys map[string]tenon.Secret

func (k keptKeys) SetKey(_ context.Context, provider string, key tenon.Secret) error {
	if provider == "nosuch" {
		return tenon.Errorf(tenon.CodeNotFound, "there is no provider 'nosuch' with a key")
	}
	k[provider] = key
	if key.IsZero() {
		delete(k, provider)
	}
	return nil
}

func (k keptKeys) HasKey(provider string) bool { return !k[provider].IsZero() }

// TestUX_10_Keys keeps, lists and removes the key of a provider. No answer contains the key.
func TestUX_10_Keys(t *testing.T) {
	h, _, _ := serve(t)
	keys := keptKeys{}
	handler := httpapi.New(h, httpapi.Config{Keys: keys})
	const path = "/api/v1/models/providers"
	for _, step := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		want                     string // in the answer
		kept                     string
	}{
		{"none yet", "GET", path, "", nil, 200, `{"name":"openai","variable":"OPENAI_API_KEY","model":"openai/gpt-5","base_url":"https://api.openai.com/v1","kept":false}`, ""},
		{"kept", "PUT", path + "/openai/key", `{"key":"sk-1"}`, nil, 204, "", "sk-1"},
		{"listed", "GET", path, "", nil, 200, `"base_url":"https://api.openai.com/v1","kept":true}`, "sk-1"},
		{"replaced", "PUT", path + "/openai/key", `{"key":"sk-2"}`, nil, 204, "", "sk-2"},
		{"empty", "PUT", path + "/openai/key", `{"key":""}`, nil, 400, "key is missing", "sk-2"},
		{"another page", "PUT", path + "/openai/key", `{"key":"sk-3"}`, []string{"Origin", "http://127.0.0.1:1"}, 403, "", "sk-2"},
		{"unknown", "PUT", path + "/nosuch/key", `{"key":"sk"}`, nil, 404, "no provider", "sk-2"},
		{"removed", "DELETE", path + "/openai/key", "", nil, 204, "", ""},
	} {
		kind := ""
		if step.body != "" {
			kind = "application/json"
		}
		status, _, got := request(t, handler, step.method, step.path, kind, step.body, step.header...)
		if status != step.status || !strings.Contains(got, step.want) {
			t.Errorf("%s: %d %s, want %d with %s", step.name, status, got, step.status, step.want)
		}
		if strings.Contains(got, "sk-") {
			t.Errorf("%s: the answer shows a key: %s", step.name, got)
		}
		if have := keys["openai"].Reveal(); have != step.kept {
			t.Errorf("%s: the key %q is kept, want %q", step.name, have, step.kept)
		}
	}
	if status, _, got := request(t, httpapi.Handler(h), "PUT", path+"/openai/key", "application/json", `{"key":"sk"}`); status != 400 || !strings.Contains(got, "keeps no keys") {
		t.Errorf("without keys: %d %s", status, got)
	}
}
