package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
)

// TestUX10_PlainWords checks the commands of chat --plain that change the conversation. Lines of a pipe cannot use
// them.
func TestUX10_PlainWords(t *testing.T) {
	dir := t.TempDir()
	steps := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(steps, []byte("conversations:\n  - {match: Hello, steps: [{text: One.}]}\n"+
		"  - {match: Bye, steps: [{text: Two.}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := model.Config{Provider: "script", Path: steps}
	h, err := host.Open(t.Context(), host.Config{Home: dir, Config: &config.Config{
		Models: map[string]model.Config{"main": script, "second": script},
		Agents: map[string]agent.Config{"default": {Model: "main"}, "writer": {Model: "second", Description: "Writes."}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var errs bytes.Buffer
	a := newApp(stdio{strings.NewReader(""), &bytes.Buffer{}, &errs})
	a.lookupEnv = func(string) (string, bool) { return "", false }
	a.inTTY = true
	q := &asking{}
	says := func(text string, want ...string) {
		t.Helper()
		errs.Reset()
		if err := a.chatWord(t.Context(), h, q, text); err != nil {
			a.note("%s", err)
		}
		for _, w := range want {
			if !strings.Contains(errs.String(), w) {
				t.Errorf("%s: %q is not in %q", text, w, errs.String())
			}
		}
	}
	says("/help", "/undo", "/tools")
	says("/model", "main", "second")
	says("/agent", "writer  Writes.")
	says("/undo", "nothing was said yet")
	says("/model nothing", "there is no model 'nothing'")
	says("/agent nothing", "nothing")
	says("/login", "takes the name of a provider")
	says("/resume", "no conversations yet")
	for _, text := range []string{"Hello", "Bye"} {
		if err := a.chatTurn(t.Context(), h, q, q.question(text), false); err != nil {
			t.Fatal(err)
		}
	}
	first := q.session
	says("/undo", "this is the copy", first+" stays as it was")
	if q.session == first {
		t.Error("the session is the same")
	}
	says("/resume", first)
	says("/resume "+first, first+" continues: Hello")
	says("/new", "a new conversation begins")
	if q.session != "" {
		t.Errorf("the session is %s", q.session)
	}
	says("/model second", "goes to second")
	says("/agent writer", "goes to agent writer")
	if q.model != "second" || !q.switched || q.agent != "writer" {
		t.Errorf("%+v", q)
	}
	a.inTTY = false
	says("/new", "there is no /")
	says("/login openai", "there is no /")
}
