package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEmptyLists checks that an empty list on a terminal names the command that adds the first entry.
func TestEmptyLists(t *testing.T) {
	for name, test := range map[string]struct {
		make func(*app) *cobra.Command
		want string
		pipe string // what a pipe's reader is told besides the list
	}{
		"servers": {newServersList, "tenon servers add NAME", ""},
		"tools":   {newToolsList, "tenon servers add NAME", "no server is configured, so there are no tools; tenon servers add NAME"},
		"runs":    {newRunsList, "tenon run PROMPT", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("HOME", dir)
			t.Chdir(dir)
			list := func(terminal bool, format string) string {
				var out, errs bytes.Buffer
				a := newApp(stdio{strings.NewReader(""), &out, &errs})
				a.outTTY, a.format = terminal, format
				cmd := test.make(a)
				cmd.SetArgs([]string{})
				if err := cmd.ExecuteContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				return errs.String()
			}
			if got := list(true, formatText); !strings.Contains(got, "none\n"+test.want) {
				t.Errorf("%q", got)
			}
			if got := list(false, formatText); !strings.HasPrefix(got, test.pipe) || test.pipe == "" && got != "" {
				t.Errorf("%q", got)
			}
			if got := list(true, formatJSON); got != "" {
				t.Errorf("%q", got)
			}
		})
	}
}
