package host_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// TestUX_10_ModelKeys keeps keys in a folder, on a system without a keyring. The files do not contain the keys in
// clear. A file that was moved, damaged or made readable to others is not used.
func TestUX_10_ModelKeys(t *testing.T) {
	home := t.TempDir()
	keys := host.KeysOf(host.Config{Home: home, LookupEnv: func(name string) (string, bool) { return "off", name == "TENON_KEYRING" }})
	variable := func(want string, code tenon.Code) {
		t.Helper()
		got, ok, err := keys.Variable("OPENAI_API_KEY")
		if got != want || ok != (want != "") || tenon.ErrorCode(err) != code {
			t.Errorf("OPENAI_API_KEY = %q, %t, %v, want %q and code %q", got, ok, err, want, code)
		}
	}
	set := func(provider, key string, code tenon.Code) {
		t.Helper()
		if err := keys.Set(provider, tenon.NewSecret(key)); tenon.ErrorCode(err) != code {
			t.Errorf("Set(%s): %v, want code %q", provider, err, code)
		}
	}
	variable("", "")
	set("openai", "", "")
	set("openai", " sk-one\n", "")
	variable("sk-one", "")
	set("openai", "sk-two", "")
	variable("sk-two", "")
	set("openai", "sk two", tenon.CodeInvalid)
	set("openai", "sk-\u202e", tenon.CodeInvalid)
	set("openai", strings.Repeat("k", 16<<10+1), tenon.CodeInvalid)
	set("ollama", "sk", tenon.CodeNotFound)
	set("../openai", "sk", tenon.CodeNotFound)
	variable("sk-two", "")
	if got, ok, err := keys.Variable("PATH"); got != "" || ok || err != nil {
		t.Errorf("PATH: %q %t %v", got, ok, err)
	}

	path := filepath.Join(home, "auth", "model-openai.json")
	sealed, err := os.ReadFile(path)
	if err != nil || bytes.Contains(sealed, []byte("sk-two")) {
		t.Errorf("the file: %v %s", err, sealed)
	}
	write := func(path string, data []byte, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(home, "auth", "model-groq.json"), sealed, 0o600)
	if got, ok, err := keys.Variable("GROQ_API_KEY"); ok || tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Errorf("the file of another provider: %q %v", got, err)
	}
	write(path, []byte("{}"), 0o600)
	variable("", tenon.CodeStore)
	if runtime.GOOS != "windows" {
		write(path, sealed, 0o644)
		variable("", tenon.CodeStore)
	}
	set("openai", "sk-three", "")
	variable("sk-three", "")
	if !keys.Has("openai") || keys.Has("anthropic") || keys.Has("../openai") {
		t.Error("Has is wrong")
	}
	set("openai", "", "")
	variable("", "")
}
