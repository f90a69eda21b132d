package host_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
)

// TestStoreRedact checks that the values that store.redact names are encrypted in the store and masked in every view,
// at every depth and for all tools, even if a policy names other values. The tool and the model get the real values.
func TestStoreRedact(t *testing.T) {
	const secret = "hunter-2-hunter"
	home := t.TempDir()
	s := &bank{}
	cfg := ruled(policy.Block{})
	cfg.Store = config.Store{Redact: []string{"password"}}
	cfg.Policy.Defaults.Redact = []string{"other"}
	first := true
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: home, Model: "m", Toolsets: map[string]tenon.Toolset{"shop": s},
		LookupEnv: func(string) (string, bool) { return "", false },
		Models: map[string]tenon.Model{"m": answering(func(*tenon.Request) (*tenon.Response, error) {
			if first {
				first = false
				return calls(`price {"thing":"tea","of":[{"PassWord":"` + secret + `"}]}`), nil
			}
			return says("done"), nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	r, events := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunCompleted || !strings.Contains(s.got, secret) {
		t.Fatalf("%s %v; the tool got %s", r.State, r.Error, s.got)
	}
	var exported bytes.Buffer
	if err := h.Sessions().Transcripts().Export(t.Context(), &exported, r.Session, host.FormatJSON); err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal([]any{r, events, exported.String()})
	if err != nil || bytes.Contains(shown, []byte(secret)) || !bytes.Contains(shown, []byte(`PassWord`)) {
		t.Errorf("%v %s", err, shown)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(home, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s holds it", f)
		}
	}
}
