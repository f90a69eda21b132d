package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// TestUX11_Unoffered checks that the test of a server names the capabilities that tenon does not offer to it, each with
// the key that offers it.
func TestUX11_Unoffered(t *testing.T) {
	none := servers.Config{Roots: []string{"/x"}, Sampling: servers.AnswerAsk}
	for name, tt := range map[string]struct {
		status servers.Status
		want   string
	}{
		"the defaults": {servers.Status{NotOffered: servers.Config{}.NotOffered()}, "unoffered roots (roots: [.]), sampling (sampling: ask); tools that need it may be missing"},
		"one":          {servers.Status{NotOffered: servers.Config{Roots: []string{"/x"}}.NotOffered()}, "unoffered sampling (sampling: ask); tools that need it may be missing"},
		"all offered":  {servers.Status{NotOffered: none.NotOffered()}, ""},
		"unreachable":  {servers.Status{NotOffered: servers.Config{}.NotOffered(), Error: &tenon.Error{Message: "gone"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := newApp(stdio{strings.NewReader(""), &out, &bytes.Buffer{}})
			if err := a.printServer(serverInfo{Status: tt.status}); err != nil {
				t.Fatal(err)
			}
			a.flush()
			if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "unoffered") {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
