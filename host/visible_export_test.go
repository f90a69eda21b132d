package host_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// hiddenText contains one character of each kind that is invisible or changes how other characters are displayed.
const hiddenText = "a\u202eb\u2066c\u200bd\U000e0041e\x1b[31mf\x07g\u009bh\u00adi"

// mirror is a toolset whose tool returns hiddenText.
type mirror struct{}

func (mirror) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "look", Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (mirror) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text(hiddenText), tenon.Text(strings.Repeat(hiddenText, 20_000))}}, nil // the second text is stored as a blob
}

// TestExportsAreVisible exports a session in which a person, a model and a server used hidden characters.
func TestExportsAreVisible(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *host.Host {
		h, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Home: filepath.Join(dir, name), Model: "m", Toolsets: map[string]tenon.Toolset{"shop": mirror{}},
			Models: map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) {
				if req.Messages[len(req.Messages)-1].Role == tenon.RoleUser {
					args, _ := json.Marshal(map[string]any{"thing": hiddenText, "x\u202ey": 1})
					return calls("look " + string(args)), nil
				}
				return says("it says " + hiddenText), nil
			})}, LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	h := open("one")
	r, _ := ask(t, h, host.Question{Text: "what is " + hiddenText, Grant: "me"})
	if r.State != tenon.RunCompleted || len(r.ToolCalls) != 1 || !r.ToolCalls[0].Success {
		t.Fatalf("%s %+v", r.State, r.ToolCalls)
	}
	var page bytes.Buffer
	if err := h.Sessions().Transcripts().Export(t.Context(), &page, r.Session, host.FormatMarkdown); err != nil {
		t.Fatal(err)
	}
	audit, err := h.Runs().Open(r.Run).Data().Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := exportText(t, h, r.Session)
	for name, out := range map[string]string{"SEC-F15_JSON": text, "SEC-F15_Markdown": page.String(), "SEC-F15_workflow": string(audit)} {
		t.Run(name, func(t *testing.T) {
			for i, c := range out {
				if tenon.IsHidden(c) && c != '\n' && c != '\t' {
					t.Fatalf("%U is at %d: %q", c, i, out[max(i-60, 0):i+20])
				}
			}
			if !strings.Contains(out, "202e") {
				t.Errorf("the text is not there: %s", out)
			}
		})
	}

	// The exported values are the original ones: a workflow made from an export sends the same arguments, and an import
	// stores the same bytes.
	var doc struct {
		Steps []struct{ Args map[string]any }
	}
	thing, _ := json.Marshal(hiddenText)
	if err := yaml.Unmarshal(audit, &doc); err != nil || len(doc.Steps) != 1 || doc.Steps[0].Args["thing"] != string(thing) || doc.Steps[0].Args["x\u202ey"] == nil {
		t.Errorf("%v: %+q\n%s", err, doc, audit)
	}
	to := open("two")
	imported(t, to, transcript.Import{}, text)
	if again := exportText(t, to, r.Session); again != text {
		t.Error("the second export differs")
	}
	before, after := audited(t, h, r.Session), audited(t, to, r.Session)
	if before != after || before == "" {
		t.Errorf("result %s, after the import %s", before, after)
	}
	imported(t, to, transcript.Import{Copy: true}, text)
}

// audited returns the digest of the only result of a session.
func audited(t *testing.T, h *host.Host, session string) string {
	t.Helper()
	list, err := h.Sessions().Transcripts().Calls(t.Context(), session)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0].ResultHash
}

// TestImportTakesNoOtherBytes refuses a file that shows one text to a person and stores another one.
func TestImportTakesNoOtherBytes(t *testing.T) {
	h := open(t, t.TempDir(), talkSteps, &shop{})
	r, _ := ask(t, h, host.Question{Text: "What does tea cost?"})
	text := exportText(t, h, r.Session)
	for _, tt := range []struct{ name, exact, want string }{
		{"SEC-F15_other bytes", `{"step":"1.0","verdict":"allow"}`, "different values"},
		{"SEC-F15_no JSON", "\xff", "different values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := strings.Replace(text, `"data":{`, `"data_base64":"`+base64.StdEncoding.EncodeToString([]byte(tt.exact))+`","data":{`, 1)
			if _, err := h.Sessions().Transcripts().Import(t.Context(), transcript.Import{From: strings.NewReader(changed), Copy: true}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	var list []view.Call
	if list, _ = h.Sessions().Transcripts().Calls(t.Context(), r.Session); len(list) != 2 {
		t.Errorf("%+v", list)
	}
}
