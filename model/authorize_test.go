package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
	"github.com/tenonhq/tenon/model/gemini"
	"github.com/tenonhq/tenon/model/openai"
)

// clouds answers requests for tokens and requests to models. It records addresses and authorizations.
type clouds struct {
	seen    []string
	bodies  []string
	refuse  int // number of requests to a model that are refused
	replies map[string]string
}

func (c *clouds) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status, text, kind := http.StatusOK, `{"access_token":"tok","expires_in":3599,"token_type":"Bearer"}`, "application/json"
	if !strings.HasSuffix(r.URL.Path, "/token") {
		c.seen = append(c.seen, strings.TrimSpace(r.URL.String()+" "+r.Header.Get("Authorization")+r.Header.Get("X-Goog-Api-Key")))
		c.bodies = append(c.bodies, string(body))
		status, text, kind = http.StatusUnauthorized, `{"error":{"message":"expired"}}`, "application/json"
		if len(c.seen) > c.refuse {
			status, kind = http.StatusOK, "text/event-stream"
			for part, reply := range c.replies {
				if strings.Contains(r.URL.Path, part) {
					text = reply
				}
			}
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

var cloudReplies = map[string]string{
	"streamGenerateContent": `data: {"candidates":[{"content":{"parts":[{"text":"fine"}]},"finishReason":"STOP"}]}` + "\n\n",
	"streamRawPredict": `data: {"type":"message_start","message":{"id":"m","content":[{"type":"text","text":"fine"}]}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
	"chat/completions": good,
}

// Test_MD10_Clouds checks the addresses and tokens for Vertex AI and Azure, and that a refused token is renewed once.
func Test_MD10_Clouds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "adc.json")
	data, err := json.Marshal(map[string]string{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	entra := map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}
	for name, c := range map[string]struct {
		cfg    model.Config
		env    map[string]string
		refuse int
		want   string // the addresses and authorizations, or a part of the error
	}{
		"gemini": {model.Config{Provider: "vertex", Model: "gemini-2.5-pro", Project: "p-1", Region: "europe-west4"}, nil, 0,
			"https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse Bearer tok"},
		"claude, by the environment": {model.Config{Provider: "vertex", Model: "claude-sonnet-4-5@20250929"},
			map[string]string{"GOOGLE_CLOUD_PROJECT": "p-2"}, 0,
			"https://aiplatform.googleapis.com/v1/projects/p-2/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict Bearer tok"},
		"several countries": {model.Config{Provider: "vertex", Model: "gemini-3-pro", Project: "p", Region: "eu"}, nil, 0,
			"https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse Bearer tok"},
		"a key": {model.Config{Provider: "vertex", Model: "gemini-3-pro", APIKey: tenon.NewSecret("AIza")}, nil, 0,
			"https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse AIza"},
		"no project": {model.Config{Provider: "vertex", Model: "gemini-3-pro"}, nil, 0, "set models.m.project"},
		"another host": {model.Config{Provider: "vertex", Model: "gemini-3-pro", Project: "p", BaseURL: "https://evil.example"}, nil, 0,
			"evil.example does not belong to the cloud whose token it would get"},
		"entra": {model.Config{Provider: "openai-compatible", Model: "gpt", BaseURL: "https://x.openai.azure.com/openai/v1", Auth: "entra"}, entra, 0,
			"https://x.openai.azure.com/openai/v1/chat/completions Bearer tok"},
		"entra is renewed": {model.Config{Provider: "openai-compatible", Model: "gpt", BaseURL: "https://x.openai.azure.com/openai/v1", Auth: "entra"}, entra, 1,
			"https://x.openai.azure.com/openai/v1/chat/completions Bearer tok https://x.openai.azure.com/openai/v1/chat/completions Bearer tok"},
		"entra is refused twice": {model.Config{Provider: "openai-compatible", Model: "gpt", BaseURL: "https://x.openai.azure.com/openai/v1", Auth: "entra"}, entra, 2,
			"HTTP 401: expired; check that the credentials belong to the right account"},
	} {
		t.Run(name, func(t *testing.T) {
			web := &clouds{refuse: c.refuse, replies: cloudReplies}
			c.cfg.Name = "m"
			env := model.Env{Transport: web, Credentials: web, LookupEnv: func(k string) (string, bool) { v, ok := c.env[k]; return v, ok }}
			var m tenon.Model
			var err error
			switch c.cfg.Wire() {
			case model.WireAnthropic:
				m, err = anthropic.New(c.cfg, env)
			case model.WireGemini:
				m, err = gemini.New(c.cfg, env)
			default:
				m, err = openai.New(c.cfg, env)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for d, err := range m.Generate(t.Context(), &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("Hi")}}) {
				switch {
				case err != nil:
					got = err.Error()
				case d.Response != nil && d.Response.Message.Text() == "fine":
					got = strings.Join(web.seen, " ")
				}
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if c.cfg.Wire() == model.WireAnthropic && (strings.Contains(web.bodies[0], `"model"`) || !strings.Contains(web.bodies[0], `"anthropic_version":"vertex-2023-10-16"`)) {
				t.Errorf("body %s", web.bodies[0])
			}
		})
	}
}

// Test_MD10_CloudKeys checks that configuration keys about clouds are refused where they have no effect.
func Test_MD10_CloudKeys(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  model.Config
		want string
	}{
		"region":       {model.Config{Provider: "openai", Model: "m", Region: "us-east-1"}, "models.x.region: provider openai has no regions"},
		"region words": {model.Config{Provider: "bedrock", Model: "m", Region: "us-east-1.evil"}, "models.x.region: 'us-east-1.evil' is not a region"},
		"profile":      {model.Config{Provider: "vertex", Model: "m", Profile: "p"}, "models.x.profile: profiles are for provider bedrock"},
		"project":      {model.Config{Provider: "bedrock", Model: "m", Project: "p"}, "models.x.project: projects are for provider vertex"},
		"project path": {model.Config{Provider: "vertex", Model: "m", Project: "../x"}, "models.x.project: '../x' is not the id"},
		"entra":        {model.Config{Provider: "openai", Model: "m", Auth: "entra"}, "models.x.auth: tokens of Entra are for addresses of Azure"},
		"entra key":    {model.Config{Provider: "openai-compatible", Model: "m", Auth: "entra", BaseURL: "https://x.openai.azure.com", APIKey: tenon.NewSecret("k")}, "entra needs no api_key"},
		"auth":         {model.Config{Provider: "openai", Model: "m", Auth: "x"}, "models.x.auth: 'x' is not one of key, entra"},
	} {
		c.cfg.Name = "x"
		if err := c.cfg.Check(); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Test_MD10_KeyIsReadAgain checks that a refused key is read again, once, and only if it has changed.
func Test_MD10_KeyIsReadAgain(t *testing.T) {
	refused := reply{status: 401, body: `{"error":{"message":"Incorrect API key provided: sk-new"}}`}
	for name, c := range map[string]struct {
		replies []reply
		key     string
		err     error
		want    string
		asked   int
	}{
		"a new key":       {[]reply{refused, {body: good}}, "sk-new", nil, "fine", 2},
		"the same key":    {[]reply{refused}, key, nil, "Incorrect API key", 1},
		"refused again":   {[]reply{refused, refused}, "sk-new", nil, "Incorrect API key provided: ***", 2},
		"it is not there": {[]reply{refused}, "", errors.New("gone"), "Incorrect API key", 1},
		"no permission":   {[]reply{{status: 403, body: `{"error":{"message":"no"}}`}}, "sk-new", nil, "no", 1},
	} {
		p := &provider{replies: c.replies}
		env := p.env()
		env.Key = func(context.Context) (tenon.Secret, error) { return tenon.NewSecret(c.key), c.err }
		m, err := openai.New(model.Config{Name: "main", Provider: "openai", Model: "gpt", APIKey: tenon.NewSecret(key)}, env)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for d, err := range m.Generate(t.Context(), &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("Hi")}}) {
			if err != nil {
				got = err.Error()
			} else if d.Response != nil {
				got = d.Response.Message.Text()
			}
		}
		if !strings.Contains(got, c.want) || p.asked != c.asked || p.asked == 2 && strings.Contains(got, "sk-new") {
			t.Errorf("%s: %d requests: %s", name, p.asked, got)
		}
	}
}
