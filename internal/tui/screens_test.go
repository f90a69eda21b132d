package tui

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/markdown"
	"github.com/tenonhq/tenon/internal/pty"
)

var update = flag.Bool("update", false, "rewrite the golden screens")

// The sizes of the golden screens.
var goldenSizes = [][2]int{{60, 18}, {80, 20}, {120, 22}}

// TestUX_Screens draws screens of a conversation through a terminal emulator and compares them with golden files. Each
// file has the screen at 60, 80 and 120 columns.
func TestUX_Screens(t *testing.T) {
	if len(screens) < 40 {
		t.Errorf("%d screens, want at least 40", len(screens))
	}
	for _, s := range slices.Concat(screens, answerScreens) {
		t.Run("UX-"+s.item+"_"+s.name, func(t *testing.T) {
			sizes := goldenSizes
			if s.sizes != nil {
				sizes = s.sizes
			}
			var out strings.Builder
			for _, size := range sizes {
				b := newBench(size[0], size[1])
				b.backend.got = []string{""}
				b.model.c.Backend = &completing{b.backend, s.completion}
				s.do(b)
				fmt.Fprintf(&out, "── %d × %d ──\n%s", size[0], size[1], emulated(t, b, size[0], size[1]))
			}
			file := filepath.Join("testdata", "screens", s.name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), out.String()); d != "" {
				t.Errorf("(-want +got; go test ./internal/tui -run Screens -update rewrites)\n%s", d)
			}
		})
	}
}

// emulated writes the view to a terminal emulator and returns the lines that it shows, with the cursor as ▏. A line
// that is too wide wraps in the emulator and moves the others, as in a real terminal.
func emulated(t *testing.T, b *bench, width, height int) string {
	t.Helper()
	v := b.View()
	lines := strings.Split(v.Content, "\n")
	if len(lines) != height {
		t.Errorf("%d × %d: %d lines", width, height, len(lines))
	}
	for _, l := range lines {
		if markdown.Width(l) > width {
			t.Errorf("%d × %d: too wide: %q", width, height, markdown.Strip(l))
		}
	}
	screen := pty.NewTerminal(width, height)
	if _, err := screen.Write([]byte("\x1b[2J\x1b[H" + strings.Join(lines, "\r\n"))); err != nil {
		t.Fatal(err)
	}
	shown := screen.Lines()
	if v.Cursor != nil {
		shown[v.Cursor.Y] = fmt.Sprintf("%s%s▏", shown[v.Cursor.Y], strings.Repeat(" ", max(v.Cursor.X-markdown.Width(shown[v.Cursor.Y]), 0)))
	}
	return strings.Join(shown, "\n") + "\n"
}

// completing is a backend with one completion.
type completing struct {
	*silent
	c Completion
}

func (c *completing) Complete(context.Context, string) Completion { return c.c }

// working makes the bench work on a run for some seconds.
func (b *bench) working(seconds int) {
	b.busy, b.stop, b.began = true, func() {}, b.now
	b.now = b.now.Add(time.Duration(seconds) * time.Second)
}

// waits shows questions as if they had waited for a minute.
func (b *bench) waits(list ...Ask) {
	b.working(3)
	b.send(Asks{list})
	b.now = b.now.Add(time.Minute)
}

var writeAsk = Ask{ID: "r/1.0", Head: "approval required", Fields: [][2]string{{"server", "disk"}, {"tool", "write"},
	{"rule", "the tool is not marked read-only, and policy.defaults.approval is destructive"},
	{"always if", `args.path.startsWith("notes/")`}},
	Args: []string{"{", `  "path": "notes/list.txt",`, `  "text": "first line\n"`, `          "second line\n"`, `          "third",`, `  "times": 9007199254740993`, "}"},
	JSON: json.RawMessage(`{"path":"notes/list.txt","text":"first line\nsecond line\nthird","times":9007199254740993}`),
	If:   `args.path.startsWith("notes/")`,
	Inputs: []Input{{Name: "path", Type: "string", Required: true, Help: "where the text is written", Value: json.RawMessage(`"notes/list.txt"`)},
		{Name: "text", Type: "string", Required: true, Value: json.RawMessage(`"first line\nsecond line\nthird"`)},
		{Name: "times", Type: "integer", Value: json.RawMessage(`9007199254740993`)},
		{Name: "mode", Type: "string", Choices: []string{"append", "replace"}},
		{Name: "sync", Type: "boolean"}, {Name: "tags", Value: json.RawMessage(`["a","b"]`)}}}

// formAsk is a question of a server with a form.
func formAsk() Ask {
	day := func(text string) (json.RawMessage, error) {
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return nil, errors.New("must be a date such as 2026-11-21")
		}
		return quoted(text), nil
	}
	number := func(text string) (json.RawMessage, error) {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 12 {
			return nil, errors.New("must be at most 12")
		}
		return json.RawMessage(text), nil
	}
	seats := map[string]json.RawMessage{"Inside (in)": []byte(`"in"`), "On the terrace (out)": []byte(`"out"`)}
	seat := func(text string) (json.RawMessage, error) {
		if v, ok := seats[text]; ok {
			return v, nil
		}
		return nil, errors.New("must be one of in, out")
	}
	anything := func(text string) (json.RawMessage, error) { return quoted(text), nil }
	return Ask{ID: "r/1.0/q1", Head: "the server asks for input", Fields: [][2]string{{"server", "booking"}, {"tool", "reserve"}},
		Requests: []Request{{Key: "q", Form: true, Text: []string{"The table is free on three evenings of that week.", "Which one shall it be, and for how many persons?"},
			Fields: [][2]string{{"asks for", "date, persons, seat, note"}},
			Inputs: []Input{{Name: "date", Type: "string", Kind: "a date such as 2026-11-21", Required: true, Check: day},
				{Name: "persons", Title: "How many persons", Type: "integer", Kind: "a whole number, at least 1, at most 12", Help: "Children count, too.", Required: true, Value: []byte("2"), Check: number},
				{Name: "seat", Type: "string", Kind: "a text", Choices: []string{"Inside (in)", "On the terrace (out)"}, Value: []byte(`"in"`), Text: "Inside (in)", Check: seat},
				{Name: "note", Type: "string", Kind: "a text, may be empty", Check: anything}}}}}
}

// pageAsk is a question of a server whether a page was opened.
func pageAsk() Ask {
	return Ask{ID: "r/1.0/q1", Head: "the server asks for input", Fields: [][2]string{{"server", "booking"}, {"tool", "reserve"}},
		Requests: []Request{{Key: "p", Head: "the server wants you to visit a page", Text: []string{"Please sign in to your account."},
			Fields: [][2]string{{"page", "https://accounts.example.org/authorize?client=booking&state=f1a2b3c4d5e6f7a8b9c0&redirect=https%3A%2F%2Fbooking.example"}, {"leads to", "accounts.example.org"}},
			Warn:   "open it yourself, if you know this site: tenon opens nothing", Yes: "I opened it", Copy: "https://accounts.example.org/authorize"}}}
}

// opens presses a key that opens an input, until the whole question was shown.
func (b *bench) opens(key string) {
	for range 60 {
		b.now = b.now.Add(time.Minute)
		if b.key(key); b.mode != modeTalk {
			return
		}
	}
}

func calls(b *bench, state CallState, n int) {
	for i := range n {
		b.send(Call{Key: fmt.Sprint(len(b.blocks)), Name: "disk.read", Args: fmt.Sprintf(`{"path":"notes/%d.txt"}`, i), State: state, Took: "12ms",
			Details: fmt.Sprintf("{\n  \"path\": \"notes/%d.txt\"\n}\n→\nfirst line\nsecond line", i)})
	}
}

const talkText = "The capital of France is **Paris**, on the *Seine*. It has about 2.1 million people in the city, and " +
	"more than 12 million in the region around it."

// goldenScreen is a screen that a golden file has.
type goldenScreen struct {
	item, name string
	do         func(*bench)
	completion Completion
	sizes      [][2]int
}

// screens are the golden screens.
var screens = []goldenScreen{
	{item: "1", name: "start", do: func(b *bench) {
		b.c.Hint = "Ask something. /help shows the commands, Ctrl-C twice leaves.\nEnter sends, Alt-Enter adds a line, Ctrl-O unfolds tool calls, Shift-Tab switches approvals.\n\na built-in script answers; tenon models login openai connects a model"
		b.send(Status{Parts: []string{"default", "anthropic/claude-sonnet-4-5"}})
	}},
	{item: "1", name: "typing", do: func(b *bench) { b.key("Tell me about the capital of France, please, and of its river") }},
	{item: "1", name: "typing_lines", do: func(b *bench) { b.key("first line", "alt+enter", "second line", "alt+enter", "  third") }},
	{item: "1", name: "pasted", do: func(b *bench) {
		b.send(tea.PasteMsg{Content: "one\ntwo\tthree\r\nfour\u202e five\x1b[31m six\n" + strings.Repeat("a long line ", 12)})
	}},
	{item: "2", name: "streaming", do: func(b *bench) {
		b.send(Said{Person: true, Text: "What is the capital of France?"})
		b.working(7)
		b.send(Delta{Text: talkText + "\n\nIts river is the **Sei"})
	}},
	{item: "2", name: "thinking", do: func(b *bench) {
		b.send(Said{Person: true, Text: "What is the capital of France?"})
		b.working(12)
		b.send(Delta{Thinking: true, Text: "The question is about France.\nThe capital is Paris, which I know"})
	}},
	{item: "4", name: "stopping", do: func(b *bench) {
		b.send(Said{Person: true, Text: "What is the capital of France?"})
		b.working(2)
		b.send(Delta{Text: "The capital of"})
		b.key("ctrl+c")
	}},
	{item: "2", name: "headings_and_lists", do: func(b *bench) {
		b.send(Said{Text: "# The plan\n\n" + talkText + "\n\n## Steps\n\n1. Read the **file** with `cat`.\n2. Change it:\n   - the first line, which is longer than the others because it must wrap somewhere\n   - the second\n3. Write it.\n\n- [x] done\n- [ ] open"})
	}},
	{item: "2", name: "table", do: func(b *bench) {
		b.send(Said{Text: "| city | people | country |\n|:-----|-------:|:-------:|\n| London | 8 866 180 | UK |\n| 東京 | 14 047 594 | 日本 |\n| Zürich | 447 082 | CH |"})
	}},
	{item: "2", name: "table_wide", do: func(b *bench) {
		b.send(Said{Text: "| name | what it does | when to use it | cost |\n|---|---|---|--:|\n| read | reads a file and returns its text, with line numbers | before each change, and whenever the file may have changed since | 1 |\n| write | replaces a file | after the person has agreed to the change that is shown | 20 |"})
	}},
	{item: "2", name: "code", do: func(b *bench) {
		b.send(Said{Text: "A server:\n\n```go\npackage main\n\n// main serves.\nfunc main() {\n\tlog.Fatal(http.ListenAndServe(\"127.0.0.1:8080\", http.FileServer(http.Dir(\".\")))) // a long line that does not fit\n}\n```\n\nRun it with `go run .`"})
	}},
	{item: "2", name: "quotes_and_links", do: func(b *bench) {
		b.send(Said{Text: "> A quote of several words that is long enough to wrap at sixty columns.\n>\n> > And one in it.\n\nSee [the page](https://example.org/a/rather/long/path?with=a&query=1) or <https://example.org>.\n\n---\n\n![a picture](https://example.org/p.png)"})
	}},
	{item: "2", name: "wide_characters", do: func(b *bench) {
		b.send(Said{Person: true, Text: "日本語で答えてください。"})
		b.send(Said{Text: strings.Repeat("東京は日本の首都です。人口は約千四百万人です。", 4) + "\n\n- 大阪\n- café (e\u0301), naïve, Ελλάδα, עברית"})
	}},
	{item: "2", name: "hostile", do: func(b *bench) {
		b.send(Said{Text: "before \x1b[2J\x1b[H after, a\u202eb, z\u200bw, \x07 bell, tab\tend, \r carriage"})
		b.send(Call{Key: "1", Name: "a\x1b[31mb.c\u202e", Args: "{\"x\":\"\x1b[2J\"}", State: CallFailed, Note: "error: \x1b]0;title\x07"})
	}},
	{item: "2", name: "long_line", do: func(b *bench) { b.send(Said{Text: strings.Repeat("x", 400) + " end"}) }},
	{item: "2", name: "reasoning_folded", do: func(b *bench) {
		b.send(Said{Person: true, Text: "Why?"})
		b.send(Answered{Thinking: "First I look at the question.\nThen I look at the answer, which is longer than a line of sixty columns.", Text: "Because."})
	}},
	{item: "2", name: "reasoning_unfolded", do: func(b *bench) {
		b.send(Answered{Thinking: "First I look at the question.\nThen I look at the answer, which is longer than a line of sixty columns.", Text: "Because."})
		b.key("ctrl+o")
	}},
	{item: "2", name: "call_running", do: func(b *bench) {
		b.send(Said{Person: true, Text: "Search for it."})
		b.working(4)
		b.send(Call{Key: "1", Name: "web.search", Args: `{"query":"the history of the lighthouse of Alexandria","limit":20}`, Note: "7 of 20: reading pages"})
	}},
	{item: "2", name: "calls_folded", do: func(b *bench) {
		calls(b, CallDone, 2)
		b.send(Call{Key: "f", Name: "web.fetch", Args: `{"url":"https://example.org"}`, State: CallFailed, Note: "error: HTTP 404: the page was not found on this server", Took: "230ms"})
		b.send(Call{Key: "d", Name: "disk.write", Args: `{"path":"a"}`, State: CallWarned, Note: "denied by local: not today"})
		b.send(Said{Text: "Two files were read."})
	}},
	{item: "2", name: "calls_unfolded", do: func(b *bench) { calls(b, CallDone, 2); b.key("ctrl+o") }},
	{item: "2", name: "calls_grouped", do: func(b *bench) {
		calls(b, CallDone, 7)
		b.send(Call{Key: "f", Name: "disk.read", State: CallFailed, Note: "error: no such file"})
		b.send(Said{Text: "All were read."})
	}},
	{item: "2", name: "calls_of_agents", do: func(b *bench) {
		b.send(Call{Key: "1", Name: "research", Args: `{"message":"how many?"}`})
		b.send(Call{Key: "2", Name: "web.search", Args: `{"query":"how many"}`, Depth: 1, State: CallDone, Took: "1.2s"})
		b.send(Call{Key: "3", Name: "web.fetch", Args: `{"url":"https://example.org"}`, Depth: 2})
	}},
	{item: "2", name: "diff", do: func(b *bench) {
		b.send(Call{Key: "1", Name: "git.diff", Args: "{}", State: CallDone, Took: "9ms",
			Details: "{}\n→\n--- a/list.txt\n+++ b/list.txt\n@@ -1,3 +1,3 @@\n first\n-second\n+the second\n third"})
		b.key("ctrl+o")
	}},
	{item: "3", name: "approval", do: func(b *bench) { b.waits(writeAsk) }},
	{item: "3", name: "approvals", do: func(b *bench) {
		b.send(Call{Key: "r/1.0", Name: "disk.write", Args: `{"path":"notes/list.txt"}`, Note: "waits for approval"})
		second := writeAsk
		second.ID = "r/1.1"
		b.waits(writeAsk, second)
	}},
	{item: "3", name: "approval_long", do: func(b *bench) {
		a := writeAsk
		a.Args = strings.Split(strings.TrimSuffix(strings.Repeat("  \"line\",\n", 60), "\n"), "\n")
		b.waits(a)
	}},
	{item: "3", name: "approval_form", do: func(b *bench) { b.waits(writeAsk); b.opens("e") }},
	{item: "3", name: "approval_form_lines", do: func(b *bench) { b.waits(writeAsk); b.opens("e"); b.key("tab") }},
	{item: "3", name: "approval_form_choice", do: func(b *bench) {
		b.waits(writeAsk)
		b.opens("e")
		b.key("tab", "tab", "7", "tab", "append", "tab")
	}},
	{item: "3", name: "approval_form_wrong", do: func(b *bench) { b.waits(writeAsk); b.opens("e"); b.key("tab", "tab", ".5", "enter") }},
	{item: "3", name: "approval_json", do: func(b *bench) {
		a := writeAsk
		a.Inputs = nil
		b.waits(a)
		b.key("e")
	}},
	{item: "3", name: "deny", do: func(b *bench) { b.waits(writeAsk); b.key("n", "use another file") }},
	{item: "3", name: "allow_if", do: func(b *bench) { b.waits(writeAsk); b.opens("i") }},
	{item: "3", name: "allow_always", do: func(b *bench) { b.waits(writeAsk); b.key("a") }},
	{item: "3", name: "limit", do: func(b *bench) {
		b.waits(Ask{ID: "r/3", Head: "a limit is reached", Limit: true, Fields: [][2]string{{"reason", "the run's limit of 20 turns is reached; may it continue?"}}})
	}},
	{item: "3", name: "server_asks", do: func(b *bench) { b.waits(formAsk()) }},
	{item: "3", name: "server_form", do: func(b *bench) { b.waits(formAsk()); b.opens("a") }},
	{item: "3", name: "server_form_filled", do: func(b *bench) {
		b.waits(formAsk())
		b.opens("a")
		b.key("2026-12-24", "enter", "4", "enter", "right", "tab")
	}},
	{item: "3", name: "server_form_wrong", do: func(b *bench) {
		b.waits(formAsk())
		b.opens("a")
		b.key("enter", "40", "enter")
	}},
	{item: "3", name: "server_form_missing", do: func(b *bench) {
		b.waits(formAsk())
		b.opens("a")
		b.key("tab", "tab", "tab", "tab", "enter", "enter")
	}},
	{item: "3", name: "server_page", do: func(b *bench) { b.waits(pageAsk()) }},
	{item: "3", name: "server_page_copied", do: func(b *bench) { b.waits(pageAsk()); b.key("p"); b.wait(quiet) }},
	{item: "3", name: "server_secret", do: func(b *bench) {
		a := formAsk()
		a.Requests[0].Warn = "server booking asks for a secret: it gets what you type, and the run's journal keeps it"
		b.waits(a)
	}},
	{item: "3", name: "server_samples", do: func(b *bench) {
		b.waits(Ask{ID: "r/1.0/q", Head: "the server asks for input", Fields: [][2]string{{"server", "booking"}, {"tool", "reserve"}},
			Requests: []Request{{Head: "the server wants an answer of the model", Text: []string{"user:", "Which of these tables is the quietest?"}, Fields: [][2]string{{"answer", "100 tokens at most"}}, Yes: "the model may answer", Decides: true}}})
	}},
	{item: "3", name: "server_several", do: func(b *bench) {
		a := formAsk()
		a.Requests = append(pageAsk().Requests, a.Requests...)
		b.waits(a)
		for b.step == 0 {
			b.wait(time.Minute)
			b.key("y")
			b.wait(quiet)
		}
	}},
	{item: "1", name: "complete_words", do: func(b *bench) { b.key("/se", "tab") }, completion: Completion{Note: "/servers  /session  /sessions"}},
	{item: "1", name: "complete_models", do: func(b *bench) { b.key("/model an", "tab") },
		completion: Completion{Back: 2, Text: "anthropic/claude-", Note: "anthropic/claude-haiku-4-5  anthropic/claude-opus-4-5  anthropic/claude-sonnet-4-5"}},
	{item: "1", name: "complete_agents", do: func(b *bench) { b.key("/agent r", "tab") }, completion: Completion{Back: 1, Text: "research "}},
	{item: "1", name: "complete_files", do: func(b *bench) { b.key("read @no", "tab") }, completion: Completion{Back: 3, Text: "@notes/", Note: "@notes/a.txt  @notes/b.txt  @notes/東京.md"}},
	{item: "1", name: "complete_resources", do: func(b *bench) { b.key("look at @docs:", "tab") },
		completion: Completion{Note: "@docs:file:///readme.md  @docs:file:///guide/first-steps.md  @docs:db://main/customers  and 41 more"}},
	{item: "4", name: "find", do: func(b *bench) {
		b.send(Said{Text: strings.Repeat("a line of the answer\n\n", 20) + "the needle is here\n\n" + strings.Repeat("another line\n\n", 20)})
		b.key("ctrl+f", "needle")
	}},
	{item: "4", name: "find_nothing", do: func(b *bench) { b.send(Said{Text: talkText}); b.key("ctrl+f", "London") }},
	{item: "1", name: "history", do: func(b *bench) { b.key("ctrl+r", "two") }},
	{item: "4", name: "status_line", do: func(b *bench) {
		b.send(Said{Text: "Done."})
		b.send(Status{Parts: []string{"research", "anthropic/claude-sonnet-4-5", "context 12.4k", "31.9k tokens", "$0.1234", "ses_06h1ypx359k43083zxtp"}, Down: []string{"web", "crm"}})
		b.key("shift+tab")
	}},
	{item: "4", name: "queued", do: func(b *bench) {
		b.working(5)
		b.send(Delta{Text: "I am at it"})
		b.steered, b.queue = []string{"and in Paris?"}, []string{"then a longer message that was typed while the model was still at work on the first one"}
	}},
	{item: "4", name: "error", do: func(b *bench) {
		b.send(Said{Person: true, Text: "hello"})
		b.send(Note{Text: "tenon: openai/gpt-4o: no API key; set OPENAI_API_KEY or models.NAME.api_key, or keep a key with tenon models login openai"})
	}},
	{item: "4", name: "error_steps", do: func(b *bench) {
		b.send(Note{Text: "tenon: no model is configured. To ask a model:\n  • give a key: tenon models login openai (or anthropic, gemini, openrouter), or\n  • start Ollama and add to tenon.yaml: models: main: {provider: ollama, model: llama3.2}"})
	}},
	{item: "4", name: "stopped", do: func(b *bench) {
		b.send(Said{Person: true, Text: "a long question"})
		b.send(Said{Text: "The answer begins with the first half"})
		b.send(Note{Text: "stopped; it is shown by: tenon runs show run_06h1ypx359k43083zxtp"})
	}},
	{item: "4", name: "resumed", do: func(b *bench) {
		b.send(Said{Person: true, Text: "What is the capital of France?"})
		b.send(Call{Key: "past/1/0", Name: "search", Args: `{"query":"France"}`, State: CallDone})
		b.send(Said{Text: talkText})
		b.send(Note{Text: "the last question was interrupted; its run is resumed"})
	}},
	{item: "4", name: "scrolled", do: func(b *bench) {
		b.send(Note{Text: "first\n" + strings.Repeat("line\n", 60) + "last"})
		b.key("pgup")
	}},
	{item: "4", name: "help", do: func(b *bench) {
		b.send(Note{Text: "/model NAME     answer with another model; without a name, choose one\n/servers        the states of the servers\n\nEnter sends, Alt-Enter and Ctrl-J add a line, Ctrl-G opens $EDITOR, @FILE attaches a file, Tab completes."})
	}},
	{item: "4", name: "tiny", sizes: [][2]int{{10, 3}, {20, 5}, {12, 1}}, do: func(b *bench) {
		b.send(Said{Text: talkText})
		b.key("hello there")
	}},
	{item: "3", name: "tiny_approval", sizes: [][2]int{{10, 3}, {20, 5}, {30, 8}, {8, 8}, {40, 2}}, do: func(b *bench) { b.waits(writeAsk) }},
	{item: "3", name: "tiny_approval_scrolled", sizes: [][2]int{{10, 3}, {20, 5}, {30, 8}}, do: func(b *bench) {
		b.waits(writeAsk)
		b.key("down", "down", "down", "pgdown")
	}},
	{item: "3", name: "tiny_form", sizes: [][2]int{{10, 3}, {20, 5}, {30, 8}}, do: func(b *bench) {
		b.waits(formAsk())
		b.opens("a")
		b.key("2026-12-24", "enter")
	}},
}

// TestUX4_Themes checks that a theme changes styles but no texts.
func TestUX4_Themes(t *testing.T) {
	line := red + "a" + reset + dim + "b" + reset + bold + "\x1b[1;36mc" + reset + "\x1b]8;;https://example.org\x1b\\d\x1b]8;;\x1b\\" + "\x1b[33me\x1b[97mf"
	for theme, want := range map[string]string{
		"":            line,
		ThemeColor:    line,
		ThemePlain:    "a" + reset + dim + "b" + reset + bold + "\x1b[1mc" + reset + "\x1b]8;;https://example.org\x1b\\d\x1b]8;;\x1b\\" + "ef",
		ThemeContrast: red + "a" + reset + "b" + reset + bold + "\x1b[1;36mc" + reset + "\x1b]8;;https://example.org\x1b\\d\x1b]8;;\x1b\\" + "\x1b[33me\x1b[97mf",
	} {
		if got := newLook(theme, nil).line(line); got != want {
			t.Errorf("%s: %q, want %q", theme, got, want)
		}
	}
	b := newBench(60, 10)
	b.send(Note{Text: "a remark"})
	b.send(Theme{ThemeContrast})
	b.shows(t, "a remark")
	if strings.Contains(b.View().Content, dim) {
		t.Error("dim text in the theme of high contrast")
	}
}

// TestUX3_Form checks the form for the arguments of a call: it keeps unchanged values, checks types, and sends the
// edited arguments.
func TestUX3_Form(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want string // the arguments that are sent; "" for none
		note string
	}{
		"unchanged":       {[]string{"enter"}, `{"path":"notes/list.txt","text":"first line\nsecond line\nthird","times":9007199254740993,"tags":["a","b"]}`, ""},
		"a text":          {[]string{"ctrl+u", "b.txt", "enter"}, `{"path":"b.txt","text":"first line\nsecond line\nthird","times":9007199254740993,"tags":["a","b"]}`, ""},
		"a number":        {[]string{"tab", "tab", "ctrl+u", "12", "enter"}, `{"path":"notes/list.txt","text":"first line\nsecond line\nthird","times":12,"tags":["a","b"]}`, ""},
		"no number":       {[]string{"tab", "tab", "ctrl+u", "twelve", "enter"}, "", "times is a whole number, not twelve"},
		"half a number":   {[]string{"tab", "tab", "ctrl+u", "1.5", "tab"}, "", "times is a whole number, not 1.5"},
		"left out":        {[]string{"tab", "tab", "ctrl+u", "enter"}, `{"path":"notes/list.txt","text":"first line\nsecond line\nthird","tags":["a","b"]}`, ""},
		"an optional one": {[]string{"tab", "tab", "tab", "append", "tab", "true", "enter"}, `{"path":"notes/list.txt","text":"first line\nsecond line\nthird","times":9007199254740993,"tags":["a","b"],"mode":"append","sync":true}`, ""},
		"no choice":       {[]string{"tab", "tab", "tab", "delete", "enter"}, "", "mode is one of append, replace"},
		"no truth":        {[]string{"tab", "tab", "tab", "tab", "yes", "enter"}, "", "sync is true or false, not yes"},
		"JSON":            {[]string{"shift+tab", "ctrl+u", "[1]", "enter"}, `{"path":"notes/list.txt","text":"first line\nsecond line\nthird","times":9007199254740993,"tags":[1]}`, ""},
		"no JSON":         {[]string{"shift+tab", "ctrl+u", "[1", "enter"}, "", "tags is a JSON value; a text has quotes, not [1"},
		"taken back":      {[]string{"ctrl+u", "x", "esc"}, "", ""},
		"as JSON":         {[]string{"ctrl+u", "b.txt", "ctrl+x", "enter"}, "{\n  \"path\": \"b.txt\",\n  \"text\": \"first line\\nsecond line\\nthird\",\n  \"times\": 9007199254740993,\n  \"tags\": [\n    \"a\",\n    \"b\"\n  ]\n}", ""},
		"a line more":     {[]string{"tab", "alt+enter", "<fourth>", "enter"}, `{"path":"notes/list.txt","text":"first line\nsecond line\nthird\n<fourth>","times":9007199254740993,"tags":["a","b"]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(100, 30)
			b.backend.got = []string{""}
			a := writeAsk
			a.JSON = json.RawMessage(`{"path":"notes/list.txt","text":"first line\nsecond line\nthird","times":9007199254740993,"tags":["a","b"]}`)
			b.waits(a)
			b.key("e")
			for _, key := range tt.keys {
				b.key(key)
				for key == "enter" && b.mode == modeForm && b.note == "" { // on to the last field, which sends
					b.key(key)
				}
			}
			got := strings.TrimPrefix(b.backend.got[len(b.backend.got)-1], "decide r/1.0 true    ")
			if got != tt.want || b.note != tt.note {
				t.Errorf("sent %s, want %s; note %q, want %q", got, tt.want, b.note, tt.note)
			}
		})
	}
}

// TestUX4_Find checks that the search in the conversation works in both directions and wraps around.
func TestUX4_Find(t *testing.T) {
	b := newBench(60, 12)
	b.send(Note{Text: "needle one\n" + strings.Repeat("hay\n", 30) + "needle two\n" + strings.Repeat("hay\n", 30) + "end"})
	at := func(want string) {
		t.Helper()
		if b.found < 0 || !strings.Contains(markdown.Strip(b.rows[b.found]), want) {
			t.Errorf("found row %d, want %q", b.found, want)
		}
	}
	b.key("ctrl+f", "needle")
	at("needle two")
	b.key("enter")
	at("needle one")
	b.key("enter")
	at("needle two")
	b.shows(t, "the search continues at the other end")
	b.key("down")
	at("needle one")
	b.key("down")
	at("needle two")
}

// TestUX1_Wrap checks that the input breaks at words, and that the cursor is at its character.
func TestUX1_Wrap(t *testing.T) {
	for name, tt := range map[string]struct {
		text     string
		at       int
		lines    []string
		row, col int
	}{
		"a word moves":       {"one two three", 13, []string{"one two ", "three"}, 1, 5},
		"cursor before it":   {"one two three", 8, []string{"one two ", "three"}, 1, 0},
		"a long word":        {"abcdefghijklmno", 15, []string{"abcdefghij", "klmno"}, 1, 5},
		"long after a short": {"ab cdefghijklmnop", 0, []string{"ab ", "cdefghijkl", "mnop"}, 0, 0},
		"full line":          {"abcdefghij", 10, []string{"abcdefghij", ""}, 1, 0},
		"a break":            {"ab\ncd", 2, []string{"ab", "cd"}, 0, 2},
		"a break at the end": {"ab\n", 3, []string{"ab", ""}, 1, 0},
		"wide characters":    {"東京東京東京", 6, []string{"東京東京東", "京"}, 1, 2},
		"blanks at the edge": {"abcdefghij   k", 14, []string{"abcdefghij", "   k"}, 1, 4},
		"nothing":            {"", 0, []string{""}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := input{text: []rune(tt.text), at: tt.at}
			s := in.show(10)
			lines := s.all()
			if d := cmp.Diff(tt.lines, lines); d != "" || s.row != tt.row || s.col != tt.col {
				t.Errorf("cursor %d, %d, want %d, %d\n%s", s.row, s.col, tt.row, tt.col, d)
			}
			if len(s.starts) != len(lines) {
				t.Errorf("%d starts of %d lines", len(s.starts), len(lines))
			}
		})
	}
}

// all returns all lines.
func (s shown) all() (lines []string) {
	for i := range s.starts {
		lines = append(lines, s.line(i))
	}
	return lines
}

// TestUX_InputLayout checks that the layout after each change is the layout of the whole text.
func TestUX_InputLayout(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", " ", "\n", "word ", "verylongword", "東京", "\u0301", "\t", "  ", "x y\nz"}
	keys := []string{"left", "right", "home", "end", "alt+left", "backspace", "delete", "ctrl+w", "ctrl+u", "ctrl+k"}
	for range 200 {
		in, width := input{}, 2+random.IntN(12)
		for range 60 {
			if random.IntN(3) > 0 {
				in.insert(pieces[random.IntN(len(pieces))])
			} else {
				in.key(keys[random.IntN(len(keys))])
			}
			whole := input{text: slices.Clone(in.text), at: in.at}
			got, want := in.show(width), whole.show(width)
			if !slices.Equal(got.starts, want.starts) || got.row != want.row || got.col != want.col {
				t.Fatalf("width %d, %q: lines at %v, cursor %d, %d, want %v, %d, %d", width, in.String(), got.starts,
					got.row, got.col, want.starts, want.row, want.col)
			}
		}
	}
}

// FuzzInputShow checks that no text and no cursor position breaks the layout, and that no character is lost.
func FuzzInputShow(f *testing.F) {
	f.Add("one two three\n\tfour", 3, 7)
	f.Add(strings.Repeat("x", 30)+" y", 31, 2)
	f.Fuzz(func(t *testing.T, text string, at, width int) {
		in := input{}
		in.insert(text)
		in.at = min(max(at, 0), len(in.text))
		s := in.show(width)
		lines := s.all()
		if s.row >= len(lines) || len(lines) != len(s.starts) {
			t.Fatalf("row %d of %d lines, %d starts", s.row, len(lines), len(s.starts))
		}
		var all strings.Builder
		for _, r := range in.text {
			all.WriteString(drawn(r))
		}
		if got := strings.Join(lines, ""); got != all.String() {
			t.Errorf("%q is drawn as %q", all.String(), got)
		}
		in.move(1, width)
		in.move(-1, width)
		if in.at < 0 || in.at > len(in.text) {
			t.Errorf("the cursor is at %d of %d", in.at, len(in.text))
		}
	})
}
