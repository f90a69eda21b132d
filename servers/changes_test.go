package servers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestTellChanges checks the log texts about a list that has changed.
func TestTellChanges(t *testing.T) {
	list := func(names ...string) (tools []tenon.Tool) {
		for _, n := range names {
			name, raw, _ := strings.Cut(n, "=")
			tools = append(tools, tenon.Tool{Remote: name, Raw: []byte(raw)})
		}
		return tools
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = fmt.Sprintf("t%02d", i)
	}
	for _, tt := range []struct {
		name          string
		before, after []tenon.Tool
		want          string
	}{
		{"the same", list("a", "b"), list("a", "b"), ""},
		{"another order", list("a", "b"), list("b", "a"), ""},
		{"all kinds", list("a=1", "b", "gone", "gone"), list("new", "b", "a=2", "new2"), "added new, new2; removed gone; changed a"},
		{"twice", list("a"), list("a", "a"), "added a"},
		{"not to be shown", list(), list("a\x1b[31m\nb"), `added a\u{1b}[31m b`},
		{"many", list(many...), nil, "removed " + strings.Join(many[:maxTold], ", ") + " and 10 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New("t", Config{Command: "x"}, Options{Logs: t.TempDir()})
			defer func() { _ = s.Close() }()
			s.tellChanges("tools", membersOf(tt.before, toolMember), membersOf(tt.after, toolMember))
			got := ""
			for _, l := range s.Logs(0) {
				got += strings.TrimPrefix(l.Text, "the list of tools changed: ")
			}
			if got != tt.want {
				t.Errorf("told %q, want %q", got, tt.want)
			}
		})
	}
}
