package servers

import (
	"strings"
	"testing"
)

// TestMaskArgs checks that no credential remains in a command line that is shown, and that everything else does.
func TestMaskArgs(t *testing.T) {
	for in, want := range map[string]string{
		"--api-key|x1y2|--port|80":           "--api-key|***|--port|80",
		"--api-key=x1y2|-token|abc":          "--api-key=***|-token|***",
		"--token=${T}|--token|${T}":          "--token=${T}|--token|${T}",
		"--password|--verbose":               "--password|--verbose",
		"env|API_KEY=abc|tool":               "env|API_KEY=***|tool",
		"sk-0123456789abcdefghij":            "***",
		"--x=ghp_0123456789abcdefghij":       "--x=***",
		"-H|Authorization: Bearer abcdefghi": "-H|Authorization: ***",
		"https://a:b@h/x?api_key=s&page=2":   "https://***@h/x?api_key=***&page=2",
		"-y|@scope/pkg|--keys-file|f|a=b":    "-y|@scope/pkg|--keys-file|f|a=b",
		"":                                   "",
	} {
		if got := strings.Join(MaskArgs(strings.Split(in, "|")), "|"); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
	s := New("h", Config{Command: "x", Args: []string{"--api-key", "x1y2"}}, Options{})
	defer s.Close() //nolint:errcheck // it never started
	if got := s.Status().Target; got != "x --api-key ***" {
		t.Errorf("the target is %q", got)
	}
}

// TestMaskAddresses checks which parts of a URL are masked.
func TestMaskAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"call https://u:p@h/ and ws://t@h": "call https://***@h/ and ws://***@h",
		"http://u:p/w@h/x":                 "http://***@h/x",
		"https://h/@scope?q=a@b":           "https://h/@scope?q=a@b",
		"https://${U}:${P}@h/?key=${K}":    "https://${U}:${P}@h/?key=${K}",
		"https://${U}:pw@h":                "https://${U}:***@h",
		"https://ann:${P}@h":               "https://***:${P}@h",
		"https://h${PORT}/@x":              "https://h${PORT}/@x",
		"https://h/#access_token=x":        "https://h/#access_token=***",
		"https://$(evil)@h/":               "https://$(evil)@h/",
		"at https://h/?key=v, sending x":   "at https://h/?key=***, sending x",
		"no address":                       "no address",
	} {
		if got := MaskAddresses(in); got != want {
			t.Errorf("%q became %q, not %q", in, got, want)
		}
	}
}
