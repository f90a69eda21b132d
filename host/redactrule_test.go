package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// bank is a shop whose tool price returns its arguments.
type bank struct {
	shop
	got string
}

func (b *bank) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	b.got = string(c.Arguments)
	r := new(tenon.Result)
	return r, json.Unmarshal([]byte(`{"content":[{"type":"text","text":"{\"Account\": \"ACC-4711\", \"balance\": 9007199254740993}"}],`+
		`"structuredContent":{"of":[{"account":"ACC-4711"}],"balance":1.50},"_meta":{"account":"ACC-4711"},"x-vendor":"ACC-4711"}`), r)
}

// TestRedact checks that the values that a redact rule names are seen by the tool only. Results are masked before they
// reach the model and the journal. Arguments are encrypted in the files of the store, and masked in records, exports
// and search results. Another process with the key can continue the run; one without the key gives the reason why it
// cannot.
func TestRedact(t *testing.T) {
	home := t.TempDir()
	const secret = "ACC-4711"
	var requests []string
	s := &bank{}
	cfg := ruled(policy.Block{})
	cfg.Policy.Defaults.Redact = []string{"account"}
	start := func(home string) (*host.Host, error) {
		m := answering(func(req *tenon.Request) (*tenon.Response, error) {
			b, err := json.Marshal(req.Messages)
			requests = append(requests, string(b))
			if last := req.Messages[len(req.Messages)-1]; last.Role == tenon.RoleUser {
				return calls(`price {"thing":"tea","account":"`+secret+`"}`, `sell {"deep":[{"ACCOUNT":"`+secret+`"}]}`), err
			}
			return says("done"), err
		})
		return host.Open(t.Context(), host.Config{Config: cfg, Home: home, Model: "m", Models: map[string]tenon.Model{"m": m},
			Toolsets: map[string]tenon.Toolset{"shop": s}, LookupEnv: func(string) (string, bool) { return "", false }})
	}
	h, err := start(home)
	if err != nil {
		t.Fatal(err)
	}
	r, events := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunInputRequired || len(r.Waiting) != 1 {
		t.Fatalf("%s %v %+v", r.State, r.Error, r.Waiting)
	}
	asked, err := h.Approvals().List(t.Context(), r.Run)
	if err != nil || len(asked) != 1 || !strings.Contains(string(asked[0].Arguments), secret) {
		t.Errorf("a person is asked %+v, %v", asked, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	// Another process goes on.
	if h, err = start(home); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.Waiting[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann", Arguments: json.RawMessage(`{"account":"` + secret + `"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	r, more := follow(t, h, r.Run)
	if r.State != tenon.RunCompleted || !strings.Contains(s.got, secret) {
		t.Fatalf("%s %v; the tool got %s", r.State, r.Error, s.got)
	}
	replay(t, h, r.Session)

	checkModelsView(t, requests, secret)
	shownTo := viewsOf(t, h, r, append(events, more...))
	for name, v := range shownTo {
		if b, err := json.Marshal(v); err != nil || bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s: %v %s", name, err, b)
		}
	}
	if hits, err := h.Sessions().Transcripts().Search(t.Context(), transcript.Query{Words: "4711"}); err != nil || len(hits) != 0 {
		t.Errorf("found %+v, %v", hits, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	noFileHas(t, home, secret)

	// Without the key, the run is listed but cannot be read.
	if err := os.RemoveAll(filepath.Join(home, "auth")); err != nil {
		t.Fatal(err)
	}
	if h, err = start(home); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Runs().Open(r.Run).Report(t.Context()); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("without the key: %v", err)
	}
}

// checkModelsView checks that the model sees its own two calls, and no result with a redacted value.
func checkModelsView(t *testing.T, requests []string, secret string) {
	t.Helper()
	last := requests[len(requests)-1]
	if n := strings.Count(last, secret); n != 2 {
		t.Errorf("the model sees it %d times: %s", n, last)
	}
	for _, want := range []string{`\"Account\": \"***\"`, `9007199254740993`} {
		if !strings.Contains(last, want) {
			t.Errorf("%s is not in %s", want, last)
		}
	}
}

// viewsOf returns everything that shows the run: its report, events, messages, journal, calls and the exported session.
func viewsOf(t *testing.T, h *host.Host, r view.Report, events []tenon.Event) map[string]any {
	t.Helper()
	shownTo := map[string]any{"report": r, "events": events}
	var err error
	if shownTo["messages"], err = h.Sessions().Transcripts().Context(t.Context(), r.Session, true); err != nil {
		t.Fatal(err)
	}
	if shownTo["journal"], err = h.Runs().Open(r.Run).Journal(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	if shownTo["calls"], err = h.Sessions().Transcripts().Calls(t.Context(), r.Session); err != nil {
		t.Fatal(err)
	}
	var exported, page bytes.Buffer
	if err := h.Sessions().Transcripts().Export(t.Context(), &exported, r.Session, host.FormatJSON); err != nil {
		t.Fatal(err)
	}
	if err := h.Sessions().Transcripts().Export(t.Context(), &page, r.Session, host.FormatMarkdown); err != nil {
		t.Fatal(err)
	}
	shownTo["export"], shownTo["page"] = exported.String(), page.String()
	return shownTo
}

// noFileHas checks that no file of the folder contains the secret.
func noFileHas(t *testing.T, home, secret string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s contains it", f)
		}
	}
}
