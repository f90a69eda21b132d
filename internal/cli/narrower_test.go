package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestNarrowerAtTheTerminal checks that the prompt for an approval offers a condition that is made from the call. It
// shows the whole condition before the person agrees, and stores it with the grant.
func TestNarrowerAtTheTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		args, typed string
		shown       []string
		condition   string // the condition of the grant; "-" if there is no grant
	}{
		"a path of the project": {args: `{text: DIR/notes/x.txt}`, typed: "i\n", shown: []string{`always if  under(args.text, "DIR")`}, condition: `under(args.text, "DIR")`},
		"a value":               {args: `{text: tea}`, typed: "i\n", shown: []string{`always if  args.text == "tea"`}, condition: `args.text == "tea"`},
		"in full":               {args: `{text: ` + strings.Repeat("long ", 30) + `, n: 3}`, typed: "i\n", shown: []string{strings.Repeat("long ", 29) + "long"}, condition: `args.n == 3 && args.text == "` + strings.Repeat("long ", 29) + `long"`},
		"what stays open":       {args: `{text: tea, tags: [a, b]}`, typed: "i\n", shown: []string{"with any tags"}, condition: `args.text == "tea"`},
		"hidden characters":     {args: `{text: "a\u202eb\u001b[2J"}`, typed: "i\n", shown: []string{`args.text == "a\u202eb\x1b[2J"`}, condition: `args.text == "a\u202eb\x1b[2J"`},
		"one's own":             {args: `{text: tea}`, typed: "i args.text in ['tea', 'milk']\n", condition: `args.text in ['tea', 'milk']`},
		"one's own, wrong":      {args: `{text: tea}`, typed: "i args.text =\ni args.txt == 'x'\ni args.text != ''\n", shown: []string{"not a CEL expression", "no such key"}, condition: `args.text != ''`},
		"nothing to offer":      {args: `{text: "a\nb"}`, typed: "i\nalways\n", shown: []string{"write the condition after it: i args.NAME == VALUE"}, condition: ""},
		"always":                {args: `{text: tea}`, typed: "a\n", condition: ""},
		"this once":             {args: `{text: tea}`, typed: "y\n", condition: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			steps := filepath.Join(dir, "steps.yaml")
			text := fmt.Sprintf("steps:\n  - text: I write.\n    calls: [{name: write, arguments: %s}]\n  - text: Done.\n", in(c.args))
			if err := os.WriteFile(steps, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			a := newApp(stdio{strings.NewReader(c.typed), &out, &errs})
			a.lookupEnv = func(name string) (string, bool) { return filepath.Join(dir, "state"), name == "XDG_STATE_HOME" }
			a.inTTY, a.outTTY, a.errTTY = true, true, true
			w := &writer{}
			h, err := host.Open(t.Context(), host.Config{Config: &config.Config{Dir: dir}, Home: filepath.Join(dir, "home"), Model: "script:" + steps,
				Toolsets: map[string]tenon.Toolset{"disk": w}, LookupEnv: a.lookupEnv})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			if _, err := a.question(t.Context(), h, host.Question{Text: "write it"}, false); err != nil {
				t.Fatalf("%v\n%s", err, errs.String())
			}
			if len(w.got) != 1 {
				t.Errorf("%d calls", len(w.got))
			}
			for _, s := range c.shown {
				if !strings.Contains(errs.String(), in(s)) {
					t.Errorf("%q is not in:\n%s", in(s), errs.String())
				}
			}
			if strings.ContainsAny(strings.ReplaceAll(errs.String(), "\r\x1b[K", ""), "\x1b\u202e") {
				t.Errorf("a hidden character reached the terminal: %q", errs.String())
			}
			list, err := h.Approvals().Grants(t.Context(), "")
			switch {
			case err != nil:
				t.Fatal(err)
			case c.condition == "-" && len(list) == 0:
			case len(list) != 1 || list[0].Condition != in(c.condition):
				t.Errorf("grants %+v, want one if %s", list, in(c.condition))
			}
		})
	}
}
