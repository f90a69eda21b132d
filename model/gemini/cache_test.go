package gemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/gemini"
)

// cacheService plays the routes of caches. lost names a cache that it does not know.
type cacheService struct {
	t      *testing.T
	calls  []string
	made   int
	lost   string
	refuse bool
	vertex bool
}

// parent begins the names of caches.
func (s *cacheService) parent() string {
	if s.vertex {
		return "projects/p-1/locations/europe-west4/"
	}
	return ""
}

func (s *cacheService) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	answer := func(status int, kind, text string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	if !json.Valid(body) && len(body) > 0 {
		s.t.Errorf("not JSON: %s", body)
	}
	if strings.Contains(r.URL.Path, "cachedContents") {
		path := "https://generativelanguage.googleapis.com/v1beta/cachedContents"
		if s.vertex {
			path = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/cachedContents"
		}
		if at := "https://" + r.URL.Host + r.URL.Path; !strings.HasPrefix(at, path) || r.Method != http.MethodPost && !strings.HasPrefix(at, path+"/c") {
			s.t.Errorf("%s %s", r.Method, at)
		}
		s.calls = append(s.calls, r.Method)
		if r.Method == http.MethodPost {
			if s.refuse {
				return answer(400, "application/json", `{"error":{"code":400,"message":"Cached content is too small","status":"INVALID_ARGUMENT"}}`)
			}
			model := `"model":"models/gemini-3-pro"`
			if s.vertex {
				model = `"model":"projects/p-1/locations/europe-west4/publishers/google/models/gemini-3-pro"`
			}
			for _, want := range []string{model, `"ttl":"300s"`, `"tools":[`, `"systemInstruction":`, `"toolConfig":`} {
				if !strings.Contains(string(body), want) {
					s.t.Errorf("%s is not in %.300s", want, body)
				}
			}
			s.made++
			return answer(200, "application/json", fmt.Sprintf(`{"name":"%scachedContents/c%d"}`, s.parent(), s.made))
		}
		return answer(200, "application/json", "{}")
	}
	name := ""
	if _, rest, ok := strings.Cut(string(body), `"cachedContent":"`+s.parent()+`cachedContents/`); ok {
		name, _, _ = strings.Cut(rest, `"`)
	}
	if whole := strings.Contains(string(body), `"systemInstruction":`) && strings.Contains(string(body), `"tools":[`) && strings.Contains(string(body), `"toolConfig":`); whole == (name != "") {
		s.t.Errorf("the request has a cache and its content, or neither: %.300s", body)
	}
	s.calls = append(s.calls, "ask "+name)
	if name != "" && name == s.lost {
		if s.vertex {
			return answer(404, "application/json", `{"error":{"code":404,"message":"Not found: cached content metadata for 7.","status":"NOT_FOUND"}}`)
		}
		return answer(403, "application/json", `{"error":{"code":403,"message":"CachedContent not found (or permission denied)","status":"PERMISSION_DENIED"}}`)
	}
	return answer(200, "text/event-stream", `data: {"candidates":[{"content":{"parts":[{"text":"ok"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":8,"candidatesTokenCount":1}}`+"\n\n")
}

// TestCaches: the second request with the same tools and system prompt makes a cache, further ones use and extend it,
// and a cache that is lost or refused never fails a request.
func TestCaches(t *testing.T) {
	on, off := true, false
	for name, c := range map[string]struct {
		cache   *bool
		service cacheService
		pauses  []time.Duration // before each request
		want    []string
	}{
		"MD-8_reused":       {&on, cacheService{}, []time.Duration{0, 0, 0, 3 * time.Minute}, []string{"ask ", "POST", "ask c1", "ask c1", "PATCH", "ask c1", "DELETE"}},
		"MD-8_off":          {&off, cacheService{}, []time.Duration{0, 0, 0}, []string{"ask ", "ask ", "ask "}},
		"MD-8_unset":        {nil, cacheService{}, []time.Duration{0, 0, 0}, []string{"ask ", "ask ", "ask "}},
		"MD-8_rare":         {&on, cacheService{}, []time.Duration{0, time.Hour, time.Hour}, []string{"ask ", "ask ", "ask "}},
		"MD-8_lost":         {&on, cacheService{lost: "c1"}, []time.Duration{0, 0, 0}, []string{"ask ", "POST", "ask c1", "ask ", "POST", "ask c2", "DELETE"}},
		"MD-8_refused":      {&on, cacheService{refuse: true}, []time.Duration{0, 0, 0}, []string{"ask ", "POST", "ask ", "ask "}},
		"MD-8_vertex":       {&on, cacheService{vertex: true}, []time.Duration{0, 0, 0, 3 * time.Minute}, []string{"ask ", "POST", "ask c1", "ask c1", "PATCH", "ask c1", "DELETE"}},
		"MD-8_vertex_lost":  {&on, cacheService{vertex: true, lost: "c1"}, []time.Duration{0, 0, 0}, []string{"ask ", "POST", "ask c1", "ask ", "POST", "ask c2", "DELETE"}},
		"MD-8_vertex_unset": {nil, cacheService{vertex: true}, []time.Duration{0, 0, 0}, []string{"ask ", "ask ", "ask "}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.service.t = t
				none := 0
				cfg := model.Config{Provider: "gemini", Model: "gemini-3-pro", APIKey: tenon.NewSecret("k"), Retries: &none, Quirks: model.QuirkConfig{Cache: c.cache}}
				if c.service.vertex {
					cfg.Provider, cfg.Project, cfg.Region = "vertex", "p-1", "europe-west4"
				}
				m, err := gemini.New(cfg, model.Env{Transport: &c.service, LookupEnv: func(string) (string, bool) { return "", false }})
				if err != nil {
					t.Fatal(err)
				}
				req := &tenon.Request{System: strings.Repeat("Be brief. ", 2000), ToolChoice: "any", Messages: []*tenon.Message{tenon.UserMessage("q")},
					Tools: []tenon.Tool{{Name: "add", Input: json.RawMessage(`{"type":"object"}`)}}}
				for _, pause := range c.pauses {
					time.Sleep(pause)
					for d, err := range m.Generate(t.Context(), req) {
						if err != nil {
							t.Fatal(err)
						}
						if d.Response != nil && (d.Response.Message.Text() != "ok" || d.Response.Usage.CacheRead != 8) {
							t.Errorf("%+v", d.Response)
						}
					}
				}
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if !slices.Equal(c.service.calls, c.want) {
					t.Errorf("%q", c.service.calls)
				}
			})
		})
	}
}
