package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/httpapi"
)

// keeping is an editor that records proposals, and counts accepted ones.
type keeping struct {
	list     []httpapi.Proposal
	accepted []string
	local    []bool // whether the agreement came from the command line
}

func (k *keeping) Plan(context.Context, config.Edits) (*config.Plan, error) {
	return &config.Plan{File: "tenon.yaml"}, nil
}

func (k *keeping) Propose(_ context.Context, e config.Edits, by tenon.Principal) (httpapi.Proposal, error) {
	p := httpapi.Proposal{ID: "prp_1", Kind: httpapi.ProposalEdit, State: httpapi.ProposalOpen, By: by, Created: time.Now(), File: "tenon.yaml", Digest: "sha256:x",
		Differences: []config.Difference{{Path: "servers." + e.Changes[0].Name, Layer: config.LayerProject, After: "{command: evil}", Effect: config.Loosens, Starts: true}},
		Files:       []config.FileChange{{File: "tenon.yaml", Before: "a", After: "b"}}, CommandLine: true, Command: "tenon proposals accept prp_1"}
	k.list = append(k.list, p)
	return p, nil
}

func (k *keeping) Proposals(context.Context) ([]httpapi.Proposal, error) { return k.list, nil }

func (k *keeping) Accept(_ context.Context, id, digest string, commandLine bool) (httpapi.Proposal, error) {
	k.accepted, k.local = append(k.accepted, id+" "+digest), append(k.local, commandLine)
	return k.list[0], nil
}

func (*keeping) Version() uint64 { return 0 }

func (k *keeping) Reject(context.Context, string) (httpapi.Proposal, error) { return k.list[0], nil }

// TestAcceptIsExplicit checks that a change cannot be accepted by accident: by a page of another origin, by a request
// that does not name the change, or by another principal.
func TestAcceptIsExplicit(t *testing.T) {
	h, _, _ := serve(t)
	const path = "/api/v1/config/proposals/prp_1/accept"
	const good = `{"digest":"sha256:x"}`
	const js = "application/json"
	own := []string{"Authorization", "Bearer " + ownToken}
	with := func(kv ...string) []string { return append(append([]string{}, own...), kv...) }
	for name, tt := range map[string]struct {
		method, path, kind, body string
		header                   []string
		status                   int
	}{
		"no token":                   {"POST", path, js, good, nil, 401},
		"another principal":          {"POST", path, js, good, []string{"Authorization", "Bearer " + annaToken}, 403},
		"no digest":                  {"POST", path, js, `{}`, own, 400},
		"an empty digest":            {"POST", path, js, `{"digest":""}`, own, 400},
		"no body":                    {"POST", path, "", "", own, 400},
		"another key":                {"POST", path, js, `{"digest":"sha256:x","yes":true}`, own, 400},
		"digest in the address":      {"POST", path + "?digest=sha256:x", js, `{}`, own, 400},
		"GET":                        {"GET", path, "", "", own, 405},
		"PUT":                        {"PUT", path, js, good, own, 405},
		"a form":                     {"POST", path, "application/x-www-form-urlencoded", "digest=sha256:x", own, 415},
		"a text":                     {"POST", path, "text/plain", good, own, 415},
		"an allowed page":            {"POST", path, js, good, with("Origin", "https://tools.example.com"), 403},
		"a foreign page":             {"POST", path, js, good, with("Origin", "https://evil.example"), 403},
		"a page of null":             {"POST", path, js, good, with("Origin", "null"), 403},
		"a page of another port":     {"POST", path, js, good, with("Origin", "http://127.0.0.1:1"), 403},
		"a token in the address":     {"POST", path + "?access_token=" + ownToken, js, good, nil, 401},
		"another proposal":           {"POST", "/api/v1/config/proposals/prp_2/accept", js, good, own, 404},
		"all of them":                {"POST", "/api/v1/config/proposals/*/accept", js, good, own, 404},
		"the list":                   {"POST", "/api/v1/config/proposals", js, good, own, 405},
		"rejected by another":        {"POST", "/api/v1/config/proposals/prp_1/reject", js, `{}`, []string{"Authorization", "Bearer " + annaToken}, 403},
		"listed for another":         {"GET", "/api/v1/config/proposals", "", "", []string{"Authorization", "Bearer " + annaToken}, 403},
		"shown to another":           {"GET", "/api/v1/config/proposals/prp_1", "", "", []string{"Authorization", "Bearer " + annaToken}, 403},
		"proposed by another":        {"PUT", "/api/v1/config/servers/x", js, `{"entry":{"command":"evil"}}`, []string{"Authorization", "Bearer " + annaToken}, 403},
		"G10: tenon's own keys":      {"PUT", "/api/v1/config/servers/x", js, `{"entry":{"command":"evil","enabled":true}}`, own, 400},
		"proposed by a foreign page": {"PUT", "/api/v1/config/servers/x", js, `{"entry":{"command":"evil"}}`, with("Origin", "https://evil.example"), 403},
	} {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			k := &keeping{list: []httpapi.Proposal{{ID: "prp_1", Digest: "sha256:x"}}}
			cfg := guarded()
			cfg.Editor = k
			status, _, body := request(t, httpapi.New(h, cfg), tt.method, tt.path, tt.kind, tt.body, tt.header...)
			if status != tt.status || len(k.accepted) > 0 || len(k.list) != 1 {
				t.Errorf("status %d, want %d; accepted %v, proposed %d: %s", status, tt.status, k.accepted, len(k.list)-1, body)
			}
			if strings.Contains(body, "sha256:x") {
				t.Errorf("the digest is told: %s", body)
			}
		})
	}
	// An explicit request is accepted, and says where it comes from.
	for name, local := range map[string]bool{"over TCP": false, "at the socket": true} {
		k := &keeping{}
		cfg := guarded()
		header := with("Origin", "http://tenon")
		if local {
			cfg, header = httpapi.Config{CommandLine: true}, nil
		}
		cfg.Editor = k
		handler := httpapi.New(h, cfg)
		status, head, body := request(t, handler, "PUT", "/api/v1/config/servers/x", js, `{"entry":{"command":"evil"}}`, header...)
		var p httpapi.Proposal
		if err := json.Unmarshal([]byte(body), &p); err != nil || status != http.StatusAccepted || p.ID != "prp_1" || head.Get("Location") != "/api/v1/config/proposals/prp_1" {
			t.Errorf("%s: %d %s, %v", name, status, body, err)
		}
		if status, _, body := request(t, handler, "GET", "/api/v1/config/proposals", "", "", header...); status != 200 || !strings.Contains(body, `"prp_1"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if status, _, body := request(t, handler, "GET", "/api/v1/me", "", "", header...); status != 200 || !strings.Contains(body, `"proposals":1`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if status, _, body := request(t, handler, "POST", path, js, good, header...); status != 200 || len(k.accepted) != 1 || k.accepted[0] != "prp_1 sha256:x" || k.local[0] != local {
			t.Errorf("%s: %d %s; %v %v", name, status, body, k.accepted, k.local)
		}
	}
}

// TestProposalsInTheDocument checks responses about proposals against openapi.json.
func TestProposalsInTheDocument(t *testing.T) {
	h, _, _ := serve(t)
	d := readDocument(t)
	handler := httpapi.New(h, httpapi.Config{Editor: &keeping{}})
	for _, tt := range []struct{ method, pattern, path, body, status string }{
		{"PUT", "/api/v1/config/servers/{name}", "/api/v1/config/servers/x", `{"entry":{"command":"evil"}}`, "202"},
		{"PUT", "/api/v1/config/servers/{name}", "/api/v1/config/servers/x", `{"entry":{"command":"evil"},"dry_run":true}`, "200"},
		{"GET", "/api/v1/config/proposals", "/api/v1/config/proposals", "", "200"},
		{"GET", "/api/v1/config/proposals/{id}", "/api/v1/config/proposals/prp_1", "", "200"},
		{"POST", "/api/v1/config/proposals/{id}/accept", "/api/v1/config/proposals/prp_1/accept", `{"digest":"sha256:x"}`, "200"},
		{"POST", "/api/v1/config/proposals/{id}/reject", "/api/v1/config/proposals/prp_1/reject", `{}`, "200"},
	} {
		kind := ""
		if tt.body != "" {
			kind = "application/json"
		}
		status, _, body := request(t, handler, tt.method, tt.path, kind, tt.body)
		schema := d.Paths[tt.pattern][strings.ToLower(tt.method)].Responses[tt.status].Content["application/json"].Schema
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil || tt.status != strconv.Itoa(status) {
			t.Errorf("%s %s: %d %s, %v", tt.method, tt.path, status, body, err)
		} else if err := d.schema(t, schema).Validate(v); err != nil {
			t.Errorf("%s %s: %v\n%s", tt.method, tt.path, err, body)
		}
	}
}
