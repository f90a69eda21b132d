package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestLoginColors checks that the marks of models login and logout are colors on a terminal.
func TestLoginColors(t *testing.T) {
	dir := t.TempDir()
	for k, v := range map[string]string{"HOME": dir, "XDG_STATE_HOME": "", "TENON_KEYRING": "off", "OPENAI_API_KEY": "k"} {
		t.Setenv(k, v)
	}
	t.Chdir(dir)
	var errs bytes.Buffer
	a := newApp(stdio{strings.NewReader("k\n"), &bytes.Buffer{}, &errs})
	a.errColor = true
	login := newModelsLogin(a)
	login.SetArgs([]string{"openai"})
	if err := login.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	logout := newModelsLogout(a)
	logout.SetArgs([]string{"openai"})
	if err := logout.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[32m✓\x1b[0m the key of openai is kept; tenon models test tries it\n" +
		"\x1b[32m✓\x1b[0m the kept key of openai is removed\n"
	if got := errs.String(); got != want {
		t.Errorf("%q", got)
	}
}
