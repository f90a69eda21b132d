package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// TestServeTokenFile checks that tenon serve refuses a token file that other users can read or replace, in whichever
// way the configuration names the file.
func TestServeTokenFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	const token = "tenon_0123456789abcdef0123456789abcdef"
	for name, tt := range map[string]struct {
		yaml string
		mode os.FileMode
		dir  os.FileMode
		want bool
	}{
		"own":                      {"serve: {auth: {secret: {file: d/token}}}", 0o600, 0o700, true},
		"own, others read":         {"serve: {auth: {secret: {file: d/token}}}", 0o644, 0o700, false},
		"own, the group reads":     {"serve: {auth: {secret: {file: d/token}}}", 0o640, 0o700, false},
		"own, a folder for all":    {"serve: {auth: {secret: {file: d/token}}}", 0o600, 0o777, false},
		"by name, others read":     {"secrets: {s: {file: d/token}}\nserve: {auth: {secret: s}}", 0o644, 0o700, false},
		"anna, others read":        {"serve: {auth: {tokens: {anna: {file: d/token}}}}", 0o644, 0o700, false},
		"anna, a link":             {"serve: {auth: {tokens: {anna: {file: link}}}}", 0o644, 0o700, false},
		"anna":                     {"serve: {auth: {tokens: {anna: {file: link}}}}", 0o400, 0o755, true},
		"anna, the group writes":   {"serve: {auth: {tokens: {anna: {file: d/token}}}}", 0o620, 0o700, false},
		"anna by name, for others": {"secrets: {s: {file: d/token}}\nserve: {auth: {tokens: {anna: s}}}", 0o604, 0o700, false},
	} {
		t.Run("SEC-F3_"+name, func(t *testing.T) {
			dir := t.TempDir()
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(os.Mkdir(filepath.Join(dir, "d"), 0o700))
			path := filepath.Join(dir, "d", "token")
			check(os.WriteFile(path, []byte(token+"\n"), 0o600))
			check(os.Chmod(path, tt.mode))
			check(os.Chmod(filepath.Dir(path), tt.dir))
			check(os.Symlink(path, filepath.Join(dir, "link")))
			c, err := config.Parse("tenon.yaml", []byte(tt.yaml+"\n"), config.Options{Dir: dir})
			check(err)
			own, err := c.ServeSecret(t.Context())
			others, err2 := c.ServeTokens(t.Context())
			got := own.Reveal() == token || others["anna"].Reveal() == token
			if got != tt.want || tt.want && (err != nil || err2 != nil) {
				t.Errorf("taken %t, want %t; %v, %v", got, tt.want, err, err2)
			}
			if !tt.want && tenon.ErrorCode(err) != tenon.CodeConfig && tenon.ErrorCode(err2) != tenon.CodeConfig {
				t.Errorf("%v, %v", err, err2)
			}
			if !tt.want && !strings.Contains(str(err)+str(err2), "chmod") {
				t.Errorf("no remedy: %v, %v", err, err2)
			}
		})
	}
}

func str(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestREL_exampleEnvironment: the example of variables for deployments is no configuration that works: somebody who
// copies it without a token is told what to set.
func TestREL_exampleEnvironment(t *testing.T) {
	text, err := os.ReadFile("../deploy/environment.example")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			values[name] = value
		}
	}
	if _, ok := values["TENON_SERVE_TOKEN"]; !ok {
		t.Fatal("the example has no TENON_SERVE_TOKEN")
	}
	yaml, err := os.ReadFile("../deploy/chart/files/tenon.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("tenon.yaml", yaml, config.Options{Dir: t.TempDir(), LookupEnv: func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.ServeSecret(t.Context())
	if err == nil || !strings.Contains(err.Error(), "environment variable 'TENON_SERVE_TOKEN' not found; set it") {
		t.Errorf("%v", err)
	}
}
