package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/markdown"
)

// TestUX5Answers checks that tenon run renders an answer on a terminal in the same way as tenon chat, whatever pieces
// it arrives in. A pipe gets the bytes of the answer unchanged.
func TestUX5Answers(t *testing.T) {
	const long = "# Title\n\nA **bold** word and `code` in a paragraph that is longer than the forty columns.\n\n" +
		"- one\n- two\n\n```go\nfunc f() {}\n\nvar x = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end"
	for name, text := range map[string]string{
		"a word":             "5",
		"blocks":             long,
		"a break at its end": "one\n\ntwo\n\n",
		"hidden characters":  "a\x1b[31mb\u202ec\n\nd",
		"only white space":   "\n\n",
		"wide":               "日本語のテキストは広いので四十桁に収まりません。これは二行になるはずです。",
	} {
		for _, piece := range []int{1, 7, len(text)} {
			t.Run(name, func(t *testing.T) {
				for _, terminal := range []bool{true, false} {
					var out, errs bytes.Buffer
					a := newApp(stdio{strings.NewReader(""), &out, &errs})
					a.lookupEnv = func(string) (string, bool) { return "", false }
					a.outTTY, a.outColor, a.columns, a.format = terminal, terminal, 40, formatText
					f := newFollower(a)
					runes := []rune(text)
					for at := 0; at < len(runes); at += piece {
						show(t, f, tenon.Event{Kind: engine.LiveDelta, Data: tenon.EventData(engine.Delta{
							Kind: tenon.DeltaText, Text: string(runes[at:min(at+piece, len(runes))])})})
					}
					show(t, f, tenon.Event{Seq: 2, Step: "1", Kind: agent.EventModel, Data: tenon.EventData(
						agent.Answered{Response: tenon.Response{Message: &tenon.Message{Role: tenon.RoleAssistant,
							Parts: []tenon.Part{{Type: tenon.PartText, Text: text}}}}})})
					want := string(onScreen([]byte(text)))
					if terminal {
						want = strings.Join(markdown.Render(text, markdown.Options{Width: 40, Links: true}), "\n")
						want = strings.TrimRight(want, "\n")
					}
					if !strings.HasSuffix(want, "\n") && want != "" {
						want += "\n"
					}
					if diff := cmp.Diff(want, out.String()); diff != "" {
						t.Errorf("terminal %v, pieces of %d:\n%s", terminal, piece, diff)
					}
				}
			})
		}
	}
}

func show(t *testing.T, f *follower, e tenon.Event) {
	t.Helper()
	if err := f.show(e); err != nil {
		t.Fatal(err)
	}
}
