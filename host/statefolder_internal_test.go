package host

import (
	"path/filepath"
	"testing"
)

// TestStateFolder checks that a relative path in the environment is ignored. Otherwise sign-ins, keys and stores would
// be written to the working folder.
func TestStateFolder(t *testing.T) {
	for name, tt := range map[string]struct{ state, home, want string }{
		"state":                     {"/s", "/h", "/s/tenon"},
		"home":                      {"", "/h", "/h/.local/state/tenon"},
		"SEC-F4_a relative state":   {"s", "/h", "/h/.local/state/tenon"},
		"SEC-F4_the working folder": {".", "/h", "/h/.local/state/tenon"},
		"SEC-F4_a relative home":    {"", "h", ""},
		"SEC-F4_both are relative":  {"../s", "h", ""},
		"neither":                   {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			lookup := func(name string) (string, bool) {
				v := map[string]string{"XDG_STATE_HOME": tt.state, "HOME": tt.home}[name]
				return v, v != ""
			}
			if got := filepath.ToSlash((Config{LookupEnv: lookup}).stateDir()); got != tt.want {
				t.Errorf("the folder is %q, want %q", got, tt.want)
			}
			if v := (Config{LookupEnv: lookup}).vault(); (v != nil) != (tt.want != "") {
				t.Errorf("there is a vault: %t", v != nil)
			}
			if path, _ := (Config{LookupEnv: lookup}).storePath(); path != "" && !filepath.IsAbs(path) {
				t.Errorf("the store lies at %s", path)
			}
		})
	}
}
