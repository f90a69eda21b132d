package host_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/transcript"
)

// exported is the JSON form of an export.
type exported struct {
	Version  int `json:"tenon_export"`
	Session  string
	Sessions []tenon.Session
	Runs     []struct {
		Run    tenon.Run
		Events []tenon.Event
	}
	Blobs []struct {
		Digest string
		Data   json.RawMessage
		Masked bool
	}
}

func export(t *testing.T, h *host.Host, session string) (exported, string) {
	t.Helper()
	var b bytes.Buffer
	if err := h.Sessions().Transcripts().Export(t.Context(), &b, session, host.FormatJSON); err != nil {
		t.Fatal(err)
	}
	var x exported
	if err := json.Unmarshal(b.Bytes(), &x); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	return x, b.String()
}

// TestExport exports a session and a fork of it. The export of the fork contains the session's messages up to the fork
// and none after it. The events equal the events of the journal.
func TestExport(t *testing.T) {
	h := open(t, t.TempDir(), `
conversations:
  - match: tea
    steps: [{calls: [{name: price, arguments: {thing: tea}}]}, {text: three}]
  - steps: [{text: "later"}]
`, &shop{})
	first, _ := ask(t, h, host.Question{Text: "What does tea cost?"})
	ask(t, h, host.Question{Text: "unrelated", Session: first.Session})
	fork, _, err := h.Sessions().Fork(t.Context(), host.Fork{Session: first.Session, At: "3"})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, h, host.Question{Text: "hello", Session: fork.ID})
	x, _ := export(t, h, first.Session)
	if x.Version != transcript.Version || x.Session != first.Session || len(x.Sessions) != 1 || len(x.Runs) != 2 || len(x.Blobs) != 1 {
		t.Fatalf("%+v", x)
	}
	for _, r := range x.Runs {
		want, err := h.Runs().Open(r.Run.ID).Journal(t.Context(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Events); diff != "" {
			t.Error(diff)
		}
	}
	x, text := export(t, h, fork.ID)
	if len(x.Sessions) != 2 || x.Sessions[0].ID != first.Session || x.Sessions[1].ID != fork.ID || len(x.Runs) != 2 ||
		x.Runs[0].Run.ID != first.Run || x.Runs[0].Run.Seq != x.Sessions[0].HeadSeq || int(x.Runs[0].Run.Seq) != len(x.Runs[0].Events) {
		t.Errorf("the fork's export: %+v", x.Sessions)
	}
	if strings.Contains(text, "unrelated") || x.Runs[0].Run.Seq != 7 || !strings.Contains(text, "hello") {
		t.Errorf("the fork's export has other parts of the conversation than the fork: %s", text)
	}
	var b bytes.Buffer
	if err := h.Sessions().Transcripts().Export(t.Context(), &b, "nope", host.FormatJSON); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Error(err)
	}
}

// TestExportMasksSecrets asks a question that contains a configured secret in all its forms. The secret was never used
// before. No export contains it.
func TestExportMasksSecrets(t *testing.T) {
	const canary = "canary+7f/3\"x-9d"
	dir := t.TempDir()
	lookup := func(name string) (string, bool) { return canary, name == "CANARY" }
	cfg, err := config.Parse("tenon.yaml", []byte("version: 1\nsecrets:\n  k: {env: CANARY}\n"), config.Options{Dir: dir, LookupEnv: lookup})
	if err != nil {
		t.Fatal(err)
	}
	m := answering(func(*tenon.Request) (*tenon.Response, error) { return says("you said " + canary), nil })
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, Model: "m", Models: map[string]tenon.Model{"m": m}, LookupEnv: lookup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	forms := []string{canary, url.QueryEscape(canary), base64.StdEncoding.EncodeToString([]byte(canary)), `canary+7f/3\"x-9d`}
	r, _ := ask(t, h, host.Question{Text: strings.Join(forms, " ")})
	_, text := export(t, h, r.Session)
	var b strings.Builder
	if err := h.Sessions().Transcripts().Export(t.Context(), &b, r.Session, host.FormatMarkdown); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text, b.String()} {
		for _, f := range forms {
			if strings.Contains(out, f) {
				t.Errorf("the export holds %s: %s", f, out)
			}
		}
		if !strings.Contains(out, "you said") {
			t.Errorf("the rest is missing: %s", out)
		}
	}
	// If a secret cannot be read, it cannot be masked.
	lost := *cfg
	lost.Secrets = map[string]config.SecretSource{"gone": {File: filepath.Join(dir, "gone")}}
	h2, err := host.Open(t.Context(), host.Config{Config: &lost, Home: t.TempDir(), Model: "m", Models: map[string]tenon.Model{"m": m}, LookupEnv: lookup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h2.Close() })
	r, _ = ask(t, h2, host.Question{Text: "q"})
	if err := h2.Sessions().Transcripts().Export(t.Context(), &b, r.Session, host.FormatJSON); tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Errorf("a secret that cannot be read: %v", err)
	}
}

// TestExportWithUnsetVariable checks that a secret whose variable is not set does not end an export: a warning names
// it, and the other secrets of its place are masked.
func TestExportWithUnsetVariable(t *testing.T) {
	const canary = "canary-90af-11c2-7d3e-55aa-0b12"
	lookup := func(name string) (string, bool) { return canary, name == "CANARY" }
	cfg, err := config.Parse("tenon.yaml", []byte("serve: {auth: {tokens: {ann: {env: NOT_SET}, ben: {env: CANARY}}}}"), config.Options{Dir: t.TempDir(), LookupEnv: lookup})
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	m := answering(func(*tenon.Request) (*tenon.Response, error) { return says("hello"), nil })
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Model: "m", LookupEnv: lookup,
		Models: map[string]tenon.Model{"m": m}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	r, _ := ask(t, h, host.Question{Text: "I found " + canary})
	_, text := export(t, h, r.Session)
	if strings.Contains(text, canary) || !strings.Contains(text, "I found ***") {
		t.Errorf("the export is %s", text)
	}
	if !strings.Contains(logged.String(), "environment variable 'NOT_SET' not found") {
		t.Errorf("the log is %s", &logged)
	}
}

// TestExportMasksSecretsOfEntries checks that each kind of secret in a server entry is masked, even if it was never
// used.
func TestExportMasksSecretsOfEntries(t *testing.T) {
	const canary = "canary-77f3-9d1c"
	lookup := func(name string) (string, bool) { return canary, name == "CANARY" }
	for name, entry := range map[string]string{
		"secret":        "servers: {x: {url: http://127.0.0.1:9/mcp, auth: {type: bearer, secret: {env: CANARY}}}}",
		"client_secret": "servers: {x: {url: http://127.0.0.1:9/mcp, auth: {type: oauth, grant: client_credentials, client_id: x, client_secret: {env: CANARY}}}}",
		"assertion":     "servers: {x: {url: http://127.0.0.1:9/mcp, auth: {type: oauth, grant: jwt_bearer, client_id: x, assertion: {env: CANARY}}}}",
		"registry":      "registry: {url: http://127.0.0.1:9, secret: {env: CANARY}}",
		"serve":         "serve: {auth: {secret: {env: CANARY}}}",
		"tokens":        "serve: {auth: {tokens: {ann: {env: CANARY}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg, err := config.Parse("tenon.yaml", []byte("version: 1\n"+entry+"\n"), config.Options{Dir: dir, LookupEnv: lookup})
			if err != nil {
				t.Fatal(err)
			}
			m := answering(func(*tenon.Request) (*tenon.Response, error) { return says("you said " + canary), nil })
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: dir, Model: "m", Models: map[string]tenon.Model{"m": m}, LookupEnv: lookup})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			r, _ := ask(t, h, host.Question{Text: "what is it?", NoTools: true})
			if _, text := export(t, h, r.Session); strings.Contains(text, canary) || !strings.Contains(text, "you said ***") {
				t.Errorf("the export holds %s", text)
			}
		})
	}
}

// TestExportMarkdown checks that markup within texts is escaped.
func TestExportMarkdown(t *testing.T) {
	m := answering(func(req *tenon.Request) (*tenon.Response, error) {
		if len(req.Messages) == 1 {
			return calls(`price {"thing":"` + "```\\n</details><script>" + `"}`), nil
		}
		return says("# No title\n<script>alert(1)</script> ![x](https://example.com/x.png) **bold**\n```sh onload=x\n<b>code</b>"), nil
	})
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: "m", Models: map[string]tenon.Model{"m": m}, Toolsets: map[string]tenon.Toolset{"shop": &shop{}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	r, _ := ask(t, h, host.Question{Text: "<i>What</i> does it cost?"})
	var b strings.Builder
	if err := h.Sessions().Transcripts().Export(t.Context(), &b, r.Session, host.FormatMarkdown); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{"# &lt;i>What&lt;/i> does it cost?\n", "\n## User\n\n&lt;i>What", "calls <code>price</code>", "````json\n", "\n````\n</details>", "result of <code>price</code>",
		"3 EUR", "\n" + `\# No title` + "\n", "&lt;script>alert(1)", `!\[x](https`, "**bold**", "\n```\n<b>code</b>\n```\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
