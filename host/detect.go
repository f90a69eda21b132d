package host

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"
)

// localServers are the servers of local models that DetectModel looks for. Without an explicit request it tries only
// ports that other programs are unlikely to use.
var localServers = []struct {
	provider, url string
	always        bool
}{
	{"ollama", "http://127.0.0.1:11434", true},
	{"llamacpp", "http://127.0.0.1:8080", true},
	{"lmstudio", "http://127.0.0.1:1234", false},
	{"vllm", "http://127.0.0.1:8000", false},
}

// defaultModels are the models that a provider's key makes available without configuration. Sources of the names:
// docs.mistral.ai/models, console.groq.com/docs/models, the page "Your First API Call" of api-docs.deepseek.com, and
// docs.x.ai/docs/migration/may-15-retirement.
var defaultModels = []struct{ env, name string }{
	{"ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"},
	{"OPENAI_API_KEY", "openai/gpt-5"},
	{"GEMINI_API_KEY", "gemini/gemini-2.5-flash"},
	{"OPENROUTER_API_KEY", "openrouter/openai/gpt-5"},
	{"MISTRAL_API_KEY", "mistral/mistral-medium-latest"},
	{"GROQ_API_KEY", "groq/openai/gpt-oss-120b"},
	{"DEEPSEEK_API_KEY", "deepseek/deepseek-flash"},
	{"XAI_API_KEY", "xai/grok-4.3"},
}

// DefaultModel returns the model that a provider's key makes available without configuration, as provider/name. It is
// empty if the provider's models have to be named.
func DefaultModel(provider string) string {
	for _, d := range defaultModels {
		if name, _, _ := strings.Cut(d.name, "/"); name == provider {
			return d.name
		}
	}
	return ""
}

// probeTimeout bounds the search for a local model.
const probeTimeout = 300 * time.Millisecond

// DetectModel finds a model if none is configured: a model for which the environment has a key or, with probe, a model
// that a local server on loopback serves. TENON_NO_PROBE=1 disables probing.
func DetectModel(ctx context.Context, lookup func(string) (string, bool), probe bool) (string, bool) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	for name := range keyedModels(lookup) {
		return name, true
	}
	if !probe {
		return "", false
	}
	for name := range localModels(ctx, lookup, false) {
		return name, true
	}
	return "", false
}

// keyedModels yields the models for which the environment has a key, with the name of the variable.
func keyedModels(lookup func(string) (string, bool)) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, d := range defaultModels {
			if v, ok := lookup(d.env); ok && v != "" && !yield(d.name, d.env) {
				return
			}
		}
	}
}

// localModels yields the first model of each local server that answers, with the server's address. If all is set, it
// also tries the less likely servers.
func localModels(ctx context.Context, lookup func(string) (string, bool), all bool) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if off, _ := lookup("TENON_NO_PROBE"); off != "" {
			return
		}
		client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{Proxy: nil}}
		defer client.CloseIdleConnections()
		for _, s := range localServers {
			if !all && !s.always {
				continue
			}
			if id, ok := firstModel(ctx, client, s.url+"/v1/models"); ok && !yield(s.provider+"/"+id, s.url) {
				return
			}
		}
	}
}

// maxModelList bounds the list of models that a local server returns.
const maxModelList = 1 << 20

// firstModel asks a local server for the models that it serves.
func firstModel(ctx context.Context, client *http.Client, url string) (string, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", false
	}
	res, err := client.Do(req)
	if err != nil {
		return "", false
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if res.StatusCode != http.StatusOK ||
		json.NewDecoder(io.LimitReader(res.Body, maxModelList)).Decode(&list) != nil || len(list.Data) == 0 {
		return "", false
	}
	return list.Data[0].ID, list.Data[0].ID != ""
}
