package servers

import (
	"strings"
	"testing"
)

// TestNotOffered checks that a status lists the capabilities that the configuration does not offer to a server (UX-11).
func TestNotOffered(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"as it comes": {Config{Command: "x"}, "roots: [.], sampling: ask"},
		"nothing":     {Config{Command: "x", Elicitation: AnswerDeny, Sampling: AnswerDeny}, "elicitation: ask, roots: [.], sampling: ask"},
		"all":         {Config{Command: "x", Sampling: AnswerAsk, Roots: []string{"."}}, ""},
		"not MCP":     {Config{URL: "http://127.0.0.1:1", Transport: TransportJSONRPC}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, u := range New("x", c.cfg, Options{}).Status().NotOffered {
				got = append(got, u.Key+": "+u.Value)
			}
			if g := strings.Join(got, ", "); g != c.want {
				t.Errorf("%q, want %q", g, c.want)
			}
		})
	}
}
