package cli

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// cmdMessages checks the message chunks in lines of events: messages FILE TYPE TEXT... A * in a text matches anything.
func cmdMessages(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args)%2 == 0 {
		ts.Fatalf("usage: messages FILE TYPE TEXT...")
	}
	type message struct {
		typ, text string
		ended     bool
	}
	var list []*message
	byID := map[string]*message{}
	over := false
	for i, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		var e tenon.Event
		ts.Check(json.Unmarshal([]byte(line), &e))
		if e.Kind != host.LiveChunk {
			continue
		}
		var c host.Chunk
		ts.Check(json.Unmarshal(e.Data, &c))
		m := byID[c.ID]
		if m == nil {
			m = &message{typ: c.Type}
			byID[c.ID], list = m, append(list, m)
		}
		if over || m.ended || m.typ != c.Type || e.Seq != 0 {
			ts.Fatalf("line %d is out of place: %s", i+1, line)
		}
		over = c.EndOfDialog
		if m.ended = c.EndOfMessage; c.Reset {
			m.text = ""
		}
		m.text += c.Content
	}
	var got []string
	for i, m := range list {
		got = append(got, m.typ, m.text)
		if !m.ended {
			ts.Fatalf("message %d, %s, has no end", i+1, m.typ)
		}
	}
	if !over {
		ts.Fatalf("the dialog has no end")
	}
	want := args[1:]
	if len(got) != len(want) {
		ts.Fatalf("the messages are %q", got)
	}
	for i, w := range want {
		re := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(w), `\*`, ".*") + "$"
		if !regexp.MustCompile(re).MatchString(got[i]) {
			ts.Fatalf("the messages are %q, want %q", got, want)
		}
	}
}
