package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// someOffers returns the offers of two servers, docs and git. The third server, down, cannot be reached. The test fails
// if a server is asked whose name is not in the line.
func someOffers(t *testing.T, line string) offers {
	asked := func(server string) {
		if !strings.Contains(line, server+":") {
			t.Errorf("%q asks server %s", line, server)
		}
	}
	return offers{servers: []string{"docs", "down", "git"},
		prompts: func(server string) ([]host.ServerPrompt, error) {
			asked(server)
			switch server {
			case "git":
				return []host.ServerPrompt{
					{Server: "git", Prompt: mcp.Prompt{Name: "review", Arguments: []mcp.PromptArgument{{Name: "what", Required: true}, {Name: "tone"}}}},
					{Server: "git", Prompt: mcp.Prompt{Name: "release", Arguments: []mcp.PromptArgument{{Name: "version"}}}},
					{Server: "git", Prompt: mcp.Prompt{Name: "hid\x1bden"}}, {Server: "git", Prompt: mcp.Prompt{Name: "two words"}},
				}, nil
			case "down":
				return nil, tenon.Errorf(tenon.CodeUnreachable, "server 'down' is\x1b[2J away")
			}
			return nil, nil
		},
		resources: func(server string) ([]host.ServerResource, error) {
			asked(server)
			if server == "down" {
				return nil, errors.New("away")
			}
			return []host.ServerResource{{Server: server, Resource: mcp.Resource{URI: "file:///a/one.md"}}, {Server: server, Resource: mcp.Resource{URI: "file:///a/two.md"}},
				{Server: server, Resource: mcp.Resource{URI: "bad uri"}}, {Server: server, Resource: mcp.Resource{Template: "day://{date}/x"}},
				{Server: server, Resource: mcp.Resource{Template: "log://{date}"}}}, nil
		},
		values: func(server string, r servers.CompletionRequest) ([]string, error) { // RP-11
			asked(server)
			switch {
			case r.Prompt == "review" && r.Argument == "tone" && r.Value == "ca" && r.Others["what"] == "x":
				return []string{r.Value + "lm", r.Value + "reful"}, nil
			case r.Template == "log://{date}" && r.Argument == "date" && r.Value == "2":
				return []string{"20 26"}, nil
			}
			return nil, nil
		}}
}

func TestComplete(t *testing.T) {
	tests := map[string]struct{ want, note string }{
		"":                           {},
		"a question":                 {},
		"/":                          {note: "/compact"},
		"/x":                         {},
		"/co":                        {want: "/compact "},
		"/g":                         {want: "/git:"},
		"/git:":                      {want: "/git:re"},
		"/git:re":                    {note: "/git:release  /git:review"},
		"/git:rev":                   {want: "/git:review "},
		"/git:hid":                   {},
		"/none:":                     {},
		"/docs:":                     {},
		"/down:":                     {note: `tenon: server 'down' is\u{1b}[2J away`},
		"/git:review ":               {note: "tone=  what="},
		"/git:review w":              {want: "/git:review what="},
		"/git:rel ":                  {want: "/git:rel version="},
		"/git:re ":                   {},
		"/git:review what=x ":        {want: "/git:review what=x tone="},
		`/git:review what="a b" t`:   {want: `/git:review what="a b" tone=`},
		"/git:review what=":          {},
		"/git:review what=x tone=ca": {note: "tone=calm     tone=careful"},
		"@docs:log://2":              {want: "@docs:log://20%2026 "},
		"/git:review what=x tone=y":  {},
		"/tools ":                    {},
		"say @":                      {note: "@docs:  @down:  @git:"},
		"say @g":                     {want: "say @git:"},
		"@git:":                      {note: "@git:day://            @git:file:///a/one.md\n@git:file:///a/two.md  @git:log://"},
		"see @docs:f":                {want: "see @docs:file:///a/"},
		"see @docs:file:///a/o":      {want: "see @docs:file:///a/one.md "},
		"@git:da":                    {want: "@git:day://"},
		"@git:day://":                {},
		"@nobody:x":                  {},
		"ann@git":                    {},
		"@down:":                     {note: "tenon: away"},
	}
	for line, tt := range tests {
		c := complete(line, someOffers(t, line), 50)
		got := ""
		if c.back > 0 || c.text != "" {
			got = line[:len(line)-c.back] + c.text
		}
		if got != tt.want || tt.note == "" && c.note != "" || !strings.HasPrefix(c.note, tt.note) {
			t.Errorf("%q becomes %q, want %q; shown %q, want %q", line, got, tt.want, c.note, tt.note)
		}
	}
	var many []string
	for i := range 100 {
		many = append(many, string(rune('a'+i%26))+strings.Repeat("x", i+1))
	}
	if c := complete("@", offers{servers: many}, 80); !strings.HasSuffix(c.note, "… and 40 more") {
		t.Errorf("%q", c.note)
	}
}

func FuzzComplete(f *testing.F) {
	f.Add("/git:review what=\"x", "name\x00", 1)
	f.Add("@git:\xff", "\xff\xfe", 0)
	f.Fuzz(func(t *testing.T, line, name string, width int) {
		o := offers{servers: []string{"git"}, prompts: func(string) ([]host.ServerPrompt, error) {
			return []host.ServerPrompt{{Server: "git", Prompt: mcp.Prompt{Name: name, Arguments: []mcp.PromptArgument{{Name: name}}}}, {Server: "git", Prompt: mcp.Prompt{Name: name + "é"}}}, nil
		}, resources: func(string) ([]host.ServerResource, error) {
			return []host.ServerResource{{Server: "git", Resource: mcp.Resource{URI: name}}, {Server: "git", Resource: mcp.Resource{Template: name}}}, nil
		}}
		if c := complete(line, o, width); c.back > len(line) || strings.ContainsAny(c.text+c.note, "\x1b\x00") {
			t.Errorf("%q: %+v", line, c)
		}
	})
}

// TestLineEditor types at the prompt of chat: completion, the previous line, input of a read that was abandoned, and
// the keys that end the input.
func TestLineEditor(t *testing.T) {
	in, typing := io.Pipe()
	var errs bytes.Buffer
	a := newApp(stdio{in, io.Discard, &errs})
	e := editorOn(a, -1, func(_ context.Context, line string) completion { return complete(line, someOffers(t, line), 80) })
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := a.lines.next(gone); !errors.Is(err, context.Canceled) { // a read is in progress from here on
		t.Fatal(err)
	}
	for _, tt := range []struct {
		keys, want string
		err        error
	}{
		{"/g\trev\tw\tmain.go\r", "/git:review what=main.go", nil},
		{"/git:re\t\x15a question\r", "a question", nil},
		{"\x1b[A\x1b[A\r", "/git:review what=main.go", nil},
		{"文é\x7f\r", "文", nil},
		{"abc\x03", "", errInterrupted},
	} {
		go func() { _, _ = io.WriteString(typing, tt.keys) }()
		if got, err := e.read(t.Context()); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q: %q %v, want %q %v", tt.keys, got, err, tt.want, tt.err)
		}
	}
	if !strings.Contains(errs.String(), "/git:release  /git:review") {
		t.Errorf("the possibilities are not shown: %q", errs.String())
	}
	if _, err := e.read(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that was given up: %v", err)
	}
	_ = typing.Close()
	if _, err := editorOn(a, -1, nil).read(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

// TestLines reads lines with all kinds of ends, and then the remaining bytes.
func TestLines(t *testing.T) {
	l := newLineReader(io.MultiReader(strings.NewReader("one\r\ntw"), strings.NewReader("o\n\nla"), strings.NewReader("st\nrest\x00 of it")))
	for _, want := range []string{"one", "two", "", "last"} {
		if got, err := l.next(t.Context()); got != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	l.unread("again", nil)
	if got, _ := l.next(t.Context()); got != "again" || l.hasLine() {
		t.Errorf("%q", got)
	}
	if rest, err := io.ReadAll(l); string(rest) != "rest\x00 of it" || err != nil {
		t.Errorf("%q %v", rest, err)
	}
	if _, err := l.next(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	l = newLineReader(strings.NewReader("no end"))
	if got, err := l.next(t.Context()); got != "no end" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if _, err := newLineReader(strings.NewReader(strings.Repeat("x", maxStdin+2))).next(t.Context()); tenon.ErrorCode(err) != tenon.CodeTooLarge {
		t.Errorf("a line without end: %v", err)
	}
}
