package cli

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/pty"
	"github.com/tenonhq/tenon/model"
)

// screenChat is a conversation on the screen of a pseudo-terminal.
type screenChat struct {
	t                 *testing.T
	control, terminal *os.File
	screen            *pty.Terminal
	env               map[string]string // besides TERM and XDG_STATE_HOME
	host              *host.Host
	far               *far // if set, the chat uses the host over HTTP
	tools             *writer
	status            chan error
	state             string
	also              relay // gets what the screen gets
}

// relay passes what it gets to another writer, if there is one.
type relay struct{ to atomic.Pointer[io.Writer] }

// Write implements [io.Writer].
func (r *relay) Write(b []byte) (int, error) {
	if w := r.to.Load(); w != nil {
		return (*w).Write(b)
	}
	return len(b), nil
}

// copyTo copies all that the program writes to w.
func (c *screenChat) copyTo(w io.Writer) { c.also.to.Store(&w) }

// openChat opens a host with a scripted model, and starts chat on a terminal.
func openChat(t *testing.T, columns, rows int, steps string) *screenChat {
	t.Helper()
	return openChatOf(t, columns, rows, steps, nil)
}

// openChatOf does the same with models of the configuration, whose scripts are in the file. The model mine answers.
func openChatOf(t *testing.T, columns, rows int, steps string, models map[string]model.Config) *screenChat {
	t.Helper()
	t.Setenv("TERM", "xterm-256color")
	c := &screenChat{t: t, tools: &writer{}, status: make(chan error, 1), screen: pty.NewTerminal(columns, rows),
		state: t.TempDir()}
	var err error
	if c.control, c.terminal, err = pty.Open(columns, rows); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	hc := host.Config{Home: dir, Model: "script:" + file, Toolsets: map[string]tenon.Toolset{"disk": c.tools}}
	if models != nil {
		hc.Model, hc.Config = "mine", &config.Config{Models: map[string]model.Config{}}
		for name, m := range models {
			m.Provider, m.Path = "script", file
			hc.Config.Models[name] = m
		}
	}
	c.host, err = host.Open(t.Context(), hc)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.MultiWriter(c.screen, &c.also), c.control) }()
	t.Cleanup(func() {
		_ = c.terminal.Close()
		_ = c.control.Close()
		<-done
		_ = c.host.Close()
	})
	return c
}

// start begins the conversation.
func (c *screenChat) start(q *asking) {
	a := newApp(stdio{c.terminal, c.terminal, c.terminal})
	a.lookupEnv = func(name string) (string, bool) {
		if value, ok := c.env[name]; ok {
			return value, true
		}
		return map[string]string{"TERM": "xterm-256color", "XDG_STATE_HOME": c.state}[name],
			name == "TERM" || name == "XDG_STATE_HOME"
	}
	a.talking, a.scripted = true, "a built-in script answers"
	if !a.fullScreen(false) {
		c.t.Fatal("the terminal is not used as a whole")
	}
	var d desk = c.host
	if c.far != nil {
		d = c.far
	}
	go func() { c.status <- a.chatOnScreen(c.t.Context(), d, q) }()
}

// types types keys. A command waits for the end of a run, because the program refuses most of them before.
func (c *screenChat) types(keys string) {
	c.t.Helper()
	for range 3000 { // half a minute
		if !strings.HasPrefix(keys, "/") || !strings.ContainsAny(strings.Join(c.screen.Lines(), ""), "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := io.WriteString(c.control, keys); err != nil {
		c.t.Fatal(err)
	}
}

// awaits waits until the screen contains all texts, and returns the screen.
func (c *screenChat) awaits(texts ...string) string {
	c.t.Helper()
	var screen string
	for range 3000 { // half a minute
		screen = strings.Join(c.screen.Lines(), "\n")
		missing := false
		for _, text := range texts {
			missing = missing || !strings.Contains(screen, text)
		}
		if !missing {
			return screen
		}
		select {
		case err := <-c.status:
			c.t.Fatalf("the conversation ended: %v\n%s", err, screen)
		case <-time.After(10 * time.Millisecond):
		}
	}
	c.t.Fatalf("%q does not appear:\n%s", texts, screen)
	return ""
}

// decides presses a key to answer the question on the screen. Keys within half a second after the question appears are
// ignored, so it waits first. It presses the key only once, because a second one would become part of the next text.
func (c *screenChat) decides(key, shown string) {
	c.t.Helper()
	c.awaits("approval required")
	time.Sleep(time.Second)
	c.types(key)
	c.awaits(shown)
}

// leaves ends the conversation.
func (c *screenChat) leaves() {
	c.t.Helper()
	c.types("\x04")
	select {
	case err := <-c.status:
		if err != nil {
			c.t.Fatal(err)
		}
	case <-time.After(time.Minute):
		c.t.Fatal("the conversation does not end")
	}
}

const screenSteps = `conversations:
  - match: write it
    steps:
      - thinking: I look at it.
        text: I write.
        calls: [{name: write, arguments: {text: "a\u202eb\e[2J"}}]
      - text: |
          # Done

          It is **written**, see [the page](https://example.org/a).

          | city | temp |
          |------|-----:|
          | London | 18 |
  - match: two lines
    steps: [{text: The second answer.}]
`

// TestUX1_Screen checks that a conversation uses the whole screen, renders Markdown, asks for approvals, and restores
// the screen at its end.
func TestUX1_Screen(t *testing.T) {
	c := openChat(t, 80, 24, screenSteps)
	c.start(&asking{})
	c.awaits("Ask something.", "\n>", "a built-in script answers")
	c.types("write it\r")
	screen := c.awaits("approval required", "server     disk", "tool       write", `a\u202eb\u001b[2J`)
	if !strings.Contains(screen, "● ") && !strings.Contains(screen, "○ disk.write") {
		t.Errorf("the call is not shown:\n%s", screen)
	}
	c.decides("y", "London    18")
	screen = c.awaits("● disk.write", "It is written, see the page (https://example.org/a).", "city    temp")
	for _, bad := range []string{"**", "|--", "# Done"} {
		if strings.Contains(screen, bad) {
			t.Errorf("Markdown is shown raw:\n%s", screen)
		}
	}
	if len(c.tools.got) != 1 {
		t.Errorf("%d calls", len(c.tools.got))
	}
	c.types("\x1b[200~two lines\nof one text\x1b[201~") // a pasted text becomes a single message
	c.awaits("> two lines\n  of one text")
	c.types("\r")
	c.awaits("The second answer.")
	c.leaves()
	list, err := c.host.Sessions().List(t.Context(), host.SessionFilter{})
	if err != nil || len(list) != 1 || list[0].Runs != 2 {
		t.Errorf("sessions: %+v, %v", list, err)
	}
	if b, err := os.ReadFile(filepath.Join(c.state, "tenon", "chat-history.jsonl")); err != nil ||
		string(b) != "\"write it\"\n\"two lines\\nof one text\"\n" {
		t.Errorf("history: %q, %v", b, err)
	}
}

// TestUX3_Yes checks that the status line says from the beginning that all calls are allowed, and that Shift-Tab
// switches this off.
func TestUX3_Yes(t *testing.T) {
	c := openChat(t, 80, 24, screenSteps)
	c.start(&asking{yes: true})
	c.awaits("Ask something.", "allows all calls")
	c.types("\x1b[Z")
	c.types("write it\r")
	if screen := c.awaits("approval required"); strings.Contains(screen, "allows all calls") {
		t.Errorf("the status line shows the earlier mode:\n%s", screen)
	}
	c.leaves() // before its terminal is closed, whose number the next one gets
}

// TestUX3_Approvals denies a call with a reason, and allows another one with edited arguments.
func TestUX3_Approvals(t *testing.T) {
	c := openChat(t, 100, 30, `steps:
  - calls: [{name: write, arguments: {text: one}}, {name: write, arguments: {text: two}}]
  - text: Both are decided.
`)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("go\r")
	c.awaits("approval required (1 of 2; Tab", `"text": "one"`)
	c.decides("n", "the reason:")
	c.types("not today\r")
	c.awaits(`"text": "two"`, "approval required", "} denied")
	c.decides("e", "text (a text):") // the form of the schema
	c.types("\x18")                  // as JSON
	c.awaits("the arguments:")
	c.types("\x15\x7f\x15\x7f\x15{\"text\": 5}\r")         // deletes the last of three lines first
	c.awaits("tenon: ", "the arguments:", `> {"text": 5}`) // the text stays, so that it can be corrected
	c.types("\x1b")
	c.awaits("[e]dit")
	c.decides("e", "text (a text):")
	c.types("\x15three\r")
	c.awaits("Both are decided.", "denied by local: not today")
	if len(c.tools.got) != 1 || c.tools.got[0] != `{"text":"three"}` {
		t.Errorf("calls: %q", c.tools.got)
	}
	c.leaves()
}

// TestUX4_Resume checks that an earlier conversation is shown, that commands work, and that Ctrl-C first stops an
// answer and then leaves.
func TestUX4_Resume(t *testing.T) {
	c := openChat(t, 100, 30, `conversations:
  - {match: first, steps: [{text: The first answer.}]}
  - {match: second, steps: [{text: The second answer.}]}
`)
	if _, err := c.host.Ask(t.Context(), "first question"); err != nil {
		t.Fatal(err)
	}
	c.start(&asking{session: "-1"})
	c.awaits("> first question", "The first answer.")
	c.types("/copy\r")
	c.awaits("the last answer is in the terminal's clipboard")
	c.types("/undo\r")
	c.awaits("the conversation was undone")
	c.types("/sessions\r")
	c.awaits("a conversation to continue", "▸ ses_", "first question")
	c.types("\r")
	c.awaits("> first question", "The first answer.")
	c.types("/model\r")
	c.awaits("a model; any other: /model PROVIDER/NAME")
	c.types("dem")
	c.awaits("PROVIDER/NAME: dem", "▸ demo")
	c.types("\x03")
	c.types("second question\r")
	c.awaits("The second answer.")
	c.types("/cost\r")
	c.awaits("tokens in this conversation")
	c.types("/theme\r")
	c.awaits("contrast: the same without dim text")
	c.types("/theme contrast\r")
	c.awaits("the theme is contrast")
	c.types("/theme contast\r")
	c.awaits("there is no theme 'contast'; did you mean 'contrast'?")
	c.types("/fok\r")
	c.awaits("there is no /fok; did you mean '/fork'?")
	c.types("/model demmo\r")
	c.awaits("there is no model 'demmo'; did you mean 'demo'?")
	c.types("\x03")
	c.awaits("Ctrl-C again leaves")
	c.types("\x03")
	if err := <-c.status; err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(c.state, "tenon", "chat-theme")); err != nil || string(b) != "contrast\n" {
		t.Errorf("the theme is not kept: %q, %v", b, err)
	}
}

// TestUX1_EditorCannotStart checks that Ctrl-G without an editor keeps the screen, and that the screen is restored
// after an editor has failed.
func TestUX1_EditorCannotStart(t *testing.T) {
	for name, tt := range map[string]struct{ editor, told string }{
		"none":     {"", "set VISUAL or EDITOR to edit the text in a program"},
		"no file":  {"/nonexistent --wait", "the editor /nonexistent is not found; set VISUAL or EDITOR"},
		"no path":  {"nosuch-editor --wait", "the editor nosuch-editor is not found"},
		"it fails": {"/bin/false", "the editor /bin/false: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := openChat(t, 100, 30, "steps: [{text: An answer.}]")
			c.env = map[string]string{"EDITOR": tt.editor}
			c.start(&asking{})
			c.awaits("Ask something.")
			for _, text := range []string{"one", "two", "three"} {
				c.types(text)
				c.awaits("> " + text)
				c.types("\x07")
				c.awaits("> "+text, tt.told)
				c.types("\x15")
			}
			c.types("go\r")
			c.awaits("An answer.")
			c.leaves()
		})
	}
}

// TestUX4_ResumeWaiting checks that a conversation whose last run waits can be followed again, and that leaving it does
// not stop the run.
func TestUX4_ResumeWaiting(t *testing.T) {
	c := openChat(t, 110, 30, screenSteps)
	s, err := c.host.Start(t.Context(), host.Question{Text: "write it"})
	if err != nil {
		t.Fatal(err)
	}
	state := func() tenon.RunState {
		t.Helper()
		run, err := c.host.Runs().Get(t.Context(), s.Run.ID)
		if err != nil {
			t.Fatal(err)
		}
		return run.State
	}
	for range 3000 {
		if state() == tenon.RunInputRequired {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, leave := range []string{"\x04", "/exit\r"} {
		c.start(&asking{session: "-1"})
		screen := c.awaits("> write it", "the last question waits for approval of disk.write", "approval required",
			"waits for approval", "1 waiting · default · "+s.Run.Session)
		if strings.Contains(screen, "●") {
			t.Errorf("an open call is shown as done:\n%s", screen)
		}
		c.types("/session\r")
		c.awaits("/session\n" + s.Run.Session)
		c.types(leave)
		if err := <-c.status; err != nil {
			t.Fatal(err)
		}
		c.awaits("decide with: tenon approvals allow "+s.Run.ID+"/1.0", "tenon chat -s "+s.Run.Session)
		if got := state(); got != tenon.RunInputRequired {
			t.Fatalf("the run is %s", got)
		}
		_, _ = io.WriteString(c.screen, "\x1b[H\x1b[2J")
	}
	a := newApp(stdio{strings.NewReader(""), io.Discard, io.Discard})
	_, err = a.question(t.Context(), c.host, host.Question{Text: "more", Session: s.Run.Session}, false)
	if err == nil || !strings.Contains(err.Error(), "its last question waits for approval of disk.write; decide with: "+
		"tenon approvals allow "+s.Run.ID+"/1.0") {
		t.Errorf("another question: %v", err)
	}
	c.start(&asking{session: "-1"})
	c.awaits("approval required")
	c.decides("y", "London    18")
	c.types("two lines\r")
	c.awaits("The second answer.")
	c.leaves()
}

// TestChatChecksNames checks that unknown names in flags are errors before the conversation begins.
func TestChatChecksNames(t *testing.T) {
	c := openChat(t, 80, 24, "steps: [{text: Hello.}]")
	for want, q := range map[string]*asking{
		"there is no model 'demmo'; did you mean 'demo'?": {model: "demmo"},
		"no agent 'nobody'":         {agent: "nobody"},
		"there is no session 'xyz'": {session: "xyz"},
	} {
		if err := checkChat(t.Context(), c.host, q); err == nil || !strings.Contains(err.Error(), want) ||
			exitStatus(err) != 2 {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := checkChat(t.Context(), c.host, &asking{model: "demo"}); err != nil {
		t.Error(err)
	}
}

// TestUX2_Files checks that a question shows which files are attached and which names are not files. Names with blanks
// can be completed.
func TestUX2_Files(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"notes.txt": "fifteen letters", "my list.txt": "x", "sub/a.txt": "y"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := openChat(t, 110, 30, "steps: [{text: The answer.}]")
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("read @my\t")
	c.awaits(`> read @"my list.txt"`)
	c.types("@notes.txt @notes.tx @sub and me@here\r")
	screen := c.awaits("attached my list.txt, 1 byte", "attached notes.txt, 15 bytes",
		"there is no file notes.tx, and nothing is attached; did you mean '@notes.txt'?", "@sub is a folder",
		"The answer.")
	if strings.Contains(screen, "no file here") {
		t.Errorf("an address is taken for a file:\n%s", screen)
	}
	c.leaves()
}

// TestChatFromPipe checks that the built-in script answers a question that it knows, even if the question comes from a
// pipe.
func TestChatFromPipe(t *testing.T) {
	for text, model := range map[string]string{"And in Paris?\n": host.DemoModel, "And in Rome?\n": "", "": ""} {
		a := newApp(stdio{strings.NewReader(text), io.Discard, io.Discard})
		a.lookupEnv = func(name string) (string, bool) { return "1", name == "TENON_NO_PROBE" }
		o := opening{asks: "chat"}
		first, err := a.firstLine(t.Context(), &o)
		if got := a.findModel(t.Context(), &config.Config{}, o); got != model || err != nil ||
			first != strings.TrimSuffix(text, "\n") {
			t.Errorf("%q: model %q, first line %q, %v", text, got, first, err)
		}
	}
}

// TestUX8_Stop stops an answer with Ctrl-C. Its text stays on the screen and in the journal, and the next question
// sends it to the model.
func TestUX8_Stop(t *testing.T) {
	c := openChat(t, 100, 30, `conversations:
  - match: long
    steps: [{thinking: hm, text: The first half of the answer and the rest, chunk: 25, chunk_delay: 1h}]
  - {match: go on, steps: [{text: The second answer.}]}
`)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("a long question\r")
	c.awaits("The first half of the ans")
	c.types("\x03")
	c.awaits("The first half of the ans", "stopped; it is shown by: tenon runs show run_")
	list, err := c.host.Runs().List(t.Context(), engine.Filter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	r, err := c.host.Runs().Open(list[0].ID).Report(t.Context())
	if err != nil || r.State != tenon.RunCancelled || r.Partial != "The first half of the ans" {
		t.Errorf("the report: %+v, %v", r, err)
	}
	c.types("go on")
	c.awaits("> go on")
	c.types("\r")
	c.awaits("The second answer.")
	said, err := c.host.Sessions().Transcripts().Messages(t.Context(), list[0].Session)
	if err != nil || len(said) != 4 || !said[1].Partial || said[1].Text() != r.Partial {
		t.Errorf("the conversation: %+v, %v", said, err)
	}
	c.leaves()
}

// TestUX4_Retry checks that a conversation can repeat a question whose model failed, and that an earlier conversation
// shows which calls failed.
func TestUX4_Retry(t *testing.T) {
	c := openChat(t, 100, 40, `conversations:
  - {match: fine, steps: [{text: An answer.}]}
  - match: go
    steps:
      - calls: [{name: write, arguments: {text: one}}]
      - error: {message: the model broke}
`)
	c.start(&asking{})
	c.awaits("Ask something.")
	c.types("/retry\r")
	c.awaits("there is no question yet")
	c.types("fine\r")
	c.awaits("An answer.")
	c.types("/retry\r")
	c.awaits("the last question did not fail")
	c.types("go\r")
	c.awaits("approval required")
	c.decides("n", "the reason:")
	c.types("not today\r")
	c.awaits("the model broke", "/retry resumes it")
	c.types("/retry\r")
	for strings.Count(c.awaits("/retry resumes it"), "/retry resumes it") < 2 {
		time.Sleep(10 * time.Millisecond) // the script fails again
	}
	run, err := c.host.Runs().Get(t.Context(), "-1")
	if err != nil {
		t.Fatal(err)
	}
	events, err := c.host.Runs().Open(run.ID).Journal(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events, func(e tenon.Event) bool { return e.Kind == tenon.EventRetry }) {
		t.Error("the failed run was not resumed")
	}
	c.types("/resume -1\r")
	c.awaits("write", "error: the call was denied by local: not today")
	c.leaves()
}
