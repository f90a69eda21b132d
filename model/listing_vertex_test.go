package model_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// garden is a Model Garden. It records the addresses, authorizations and paying projects of its requests.
type garden struct {
	seen   []string
	payer  string // the project that requests must name, or ""
	refuse string // part of the address of requests that are refused with status
	status int
}

// gardenPages has the pages of each publisher, by the publisher and the token of the page.
var gardenPages = map[string]string{
	"google": `{"publisherModels":[{"name":"publishers/google/models/gemini-3-pro","versionId":"default"},
		{"name":"publishers/google/models/bert-base","versionId":"001"}],"nextPageToken":"a b"}`,
	"google a b": `{"publisherModels":[{"name":"publishers/google/models/gemini-2.5-flash","versionId":"default"}]}`,
	"anthropic": `{"publisherModels":[{"name":"publishers/anthropic/models/claude-sonnet-4-5","versionId":"20250929"},
		{"name":"publishers/anthropic/models/claude-opus-4-6","versionId":"default"}]}`,
}

func (g *garden) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, text string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	if strings.HasSuffix(r.URL.Path, "/token") {
		return answer(http.StatusOK, `{"access_token":"tok","expires_in":3599,"token_type":"Bearer"}`)
	}
	payer := r.Header.Get("X-Goog-User-Project")
	g.seen = append(g.seen, strings.Join(strings.Fields(r.Method+" "+r.URL.Host+r.URL.Path+" "+
		r.Header.Get("Authorization")+r.Header.Get("X-Goog-Api-Key")+" "+payer), " "))
	switch {
	case payer != g.payer:
		return answer(http.StatusForbidden, `{"error":{"code":403,"message":"requires a quota project"}}`)
	case g.refuse != "" && strings.Contains(r.URL.Path, g.refuse):
		return answer(g.status, `{"error":{"message":"refused"}}`)
	}
	publisher := strings.Split(r.URL.Path, "/")[3]
	return answer(http.StatusOK, gardenPages[strings.TrimSpace(publisher+" "+r.URL.Query().Get("pageToken"))])
}

// Test_MD10_ListVertex checks the route of publishers' models: addresses, pages, credentials, the project that pays for
// the request of a person, and the names of models.
func Test_MD10_ListVertex(t *testing.T) {
	file := filepath.Join(t.TempDir(), "adc.json")
	data, err := json.Marshal(map[string]string{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	const all = "[claude-opus-4-6 claude-sonnet-4-5@20250929 gemini-2.5-flash gemini-3-pro]"
	const google, claude = "/v1beta1/publishers/google/models ", "/v1beta1/publishers/anthropic/models "
	for name, c := range map[string]struct {
		cfg    model.Config
		env    map[string]string
		garden garden
		want   string // the names and the requests, or a part of the error
	}{
		"a region": {model.Config{Region: "europe-west4"}, nil, garden{}, all + strings.ReplaceAll(" GET HOST"+google+"Bearer tok GET HOST"+
			google+"Bearer tok GET HOST"+claude+"Bearer tok", "HOST", "europe-west4-aiplatform.googleapis.com")},
		"a key, global": {model.Config{APIKey: tenon.NewSecret("k")}, nil, garden{}, all + strings.ReplaceAll(" GET HOST"+google+"k GET HOST"+
			google+"k GET HOST"+claude+"k", "HOST", "aiplatform.googleapis.com")},
		"a project pays": {model.Config{Project: "p-1", Region: "us"}, nil, garden{payer: "p-1"}, all + strings.ReplaceAll(" GET HOST"+
			google+"Bearer tok GET HOST"+google+"Bearer tok p-1 GET HOST"+google+"Bearer tok p-1 GET HOST"+claude+
			"Bearer tok GET HOST"+claude+"Bearer tok p-1", "HOST", "aiplatform.us.rep.googleapis.com")},
		"the project of the environment pays": {model.Config{}, map[string]string{"GOOGLE_CLOUD_PROJECT": "p-2"}, garden{payer: "p-2"},
			claude + "Bearer tok p-2"},
		"no right to Claude": {model.Config{Region: "us-east5", Model: "claude-sonnet-4-5"}, nil, garden{refuse: "anthropic", status: 404},
			"[gemini-2.5-flash gemini-3-pro]"},
		"nobody pays": {model.Config{}, nil, garden{payer: "p-3"}, "auth_required: vertex/none: HTTP 403: requires a quota project"},
		"broken":      {model.Config{}, nil, garden{refuse: "anthropic", status: 500}, "model_error: vertex/none: HTTP 500: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Name, c.cfg.Provider = "m", "vertex"
			lookup := func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
			list, err := model.List(t.Context(), c.cfg, model.Env{Transport: &c.garden, Credentials: &c.garden, LookupEnv: lookup})
			var ids []string
			for _, m := range list {
				ids = append(ids, m.ID)
			}
			got := fmt.Sprint(ids) + " " + strings.Join(c.garden.seen, " ")
			if err != nil {
				got = fmt.Sprintf("%s: %v", tenon.ErrorCode(err), err)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
