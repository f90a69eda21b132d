package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon/internal/markdown"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silent is a backend that only records its calls.
type silent struct {
	got    []string
	refuse error // of Decide
}

func (s *silent) Submit(_ context.Context, text string) { s.got = append(s.got, "submit "+text) }

func (s *silent) Continue(context.Context) { s.got = append(s.got, "continue") }

func (s *silent) Steer(_ context.Context, text string) error {
	s.got = append(s.got, "steer "+text)
	return ErrLate
}

func (s *silent) Decide(_ context.Context, a Ask, r Ruling) error {
	got := fmt.Sprintf("decide %s %v %s %s %s %s", a.ID, r.Allow, r.Remember, r.If, r.Reason, r.Args)
	if r.Cancel {
		got += "cancel"
	}
	for _, key := range slices.Sorted(maps.Keys(r.Contents)) {
		got += key + "=" + string(r.Contents[key]) + " "
	}
	s.got = append(s.got, got)
	return s.refuse
}

func (s *silent) Complete(context.Context, string) Completion {
	return Completion{Back: 1, Text: "/help "}
}

func (s *silent) Edit(_ context.Context, text string) (string, error) { return text + "!", nil }

var _ Backend = (*silent)(nil)

// bench is a model without a terminal. The test controls its clock.
type bench struct {
	*model
	backend *silent
	now     time.Time
	alarms  []alarm
}

// alarm is a message that the model asked for after a pause.
type alarm struct {
	at  time.Time
	msg tea.Msg
}

// wait moves the clock, and delivers the messages of pauses when they are over.
func (b *bench) wait(d time.Duration) {
	until := b.now.Add(d)
	for len(b.alarms) > 0 && !b.alarms[0].at.After(until) {
		b.now = b.alarms[0].at
		b.ring()
	}
	b.now = until
}

// ring delivers the messages of pauses that are over.
func (b *bench) ring() {
	for len(b.alarms) > 0 && !b.alarms[0].at.After(b.now) {
		msg := b.alarms[0].msg
		b.alarms = b.alarms[1:]
		b.send(msg)
	}
}

func newBench(width, height int) *bench {
	b := &bench{backend: &silent{}, now: time.Unix(1_000_000, 0)}
	b.model = newModel(context.Background(), Config{Backend: b.backend, Width: width, Height: height,
		Now: func() time.Time { return b.now }, Hint: "hint", History: []string{"old one", "old two"},
		Mode: []string{"asks", "allows"}, SetMode: func(m string) { b.backend.got = append(b.backend.got, "mode "+m) }})
	b.later = func(d time.Duration, msg tea.Msg) tea.Cmd {
		b.alarms = append(b.alarms, alarm{b.now.Add(d), msg})
		return nil
	}
	return b
}

// key presses a key by its name, or types a text. It also carries out the commands that result.
func (b *bench) key(names ...string) {
	keys := map[string]tea.KeyPressMsg{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "tab": {Code: tea.KeyTab},
		"right":     {Code: tea.KeyRight},
		"backspace": {Code: tea.KeyBackspace}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
		"alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl},
		"ctrl+f": {Code: 'f', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl},
		"ctrl+w": {Code: 'w', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
		"ctrl+x": {Code: 'x', Mod: tea.ModCtrl}, "ctrl+v": {Code: 'v', Mod: tea.ModCtrl},
		"ctrl+a": {Code: 'a', Mod: tea.ModCtrl}, "ctrl+k": {Code: 'k', Mod: tea.ModCtrl}}
	for _, name := range names {
		if k, ok := keys[name]; ok {
			b.send(k)
			continue
		}
		for _, r := range name {
			b.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// send handles a message and the messages of the commands that result, except ticks.
func (b *bench) send(msg tea.Msg) {
	b.ring()
	_, cmd := b.Update(msg)
	b.carry(cmd)
}

func (b *bench) carry(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	if b.busy && len(b.backend.got) == 0 { // ignore the tick in the batch of submit's command
		return
	}
	switch msg := cmd().(type) {
	case steerMsg, decidedMsg, completedMsg, pictureMsg:
		b.send(msg)
	}
}

// screen returns the drawn lines without styles.
func (b *bench) screen() []string {
	b.handled = b.now // drawing follows at once
	lines := strings.Split(markdown.Strip(b.View().Content), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}

func (b *bench) shows(t *testing.T, texts ...string) {
	t.Helper()
	screen := strings.Join(b.screen(), "\n")
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			t.Errorf("%q is not shown:\n%s", text, screen)
		}
	}
}

// TestUX1_Input checks the keys of the input with several lines, history and search.
func TestUX1_Input(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want string
	}{
		"typed":             {[]string{"abc"}, "abc"},
		"several lines":     {[]string{"a", "alt+enter", "b"}, "a\nb"},
		"backslash":         {[]string{`a\`, "enter", "b"}, "a\nb"},
		"in the middle":     {[]string{"ac", "left", "b"}, "abc"},
		"words":             {[]string{"one two", "ctrl+w", "x"}, "one x"},
		"several lines off": {[]string{"a", "alt+enter", "bc", "ctrl+u", "ctrl+u", "ctrl+u", "d"}, "d"},
		"the line":          {[]string{"a", "alt+enter", "bc", "ctrl+u", "d"}, "a\nd"},
		"to the end":        {[]string{"abc", "ctrl+a", "ctrl+k"}, ""},
		"history":           {[]string{"draft", "up", "up", "down"}, "old two"},
		"history and back":  {[]string{"draft", "up", "down"}, "draft"},
		"up within a text":  {[]string{"ab", "alt+enter", "c", "up", "x"}, "axb\nc"},
		"no key":            {[]string{"/login openai sk-1", "enter", "up"}, "old two"},
		"not even alone":    {[]string{"/login sk-1", "enter", "up"}, "old two"},
		"login":             {[]string{"/login", "enter", "up"}, "/login"},
		"search":            {[]string{"ctrl+r", "one", "enter"}, "old one"},
		"search and leave":  {[]string{"draft", "ctrl+r", "one", "esc"}, "draft"},
		"completed":         {[]string{"/", "tab"}, "/help "},
		"cleared by Ctrl-C": {[]string{"abc", "ctrl+c"}, ""},
		"a wide character":  {[]string{"東京", "backspace"}, "東"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(40, 12)
			b.backend.got = []string{""}
			b.key(tt.keys...)
			if d := cmp.Diff(tt.want, b.in.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestUX4_Picture checks that Ctrl-V inserts the mention of a picture at the cursor, or says why not.
func TestUX4_Picture(t *testing.T) {
	b := newBench(60, 12)
	b.backend.got = []string{""}
	b.key("ab", "left", "ctrl+v") // nothing provides pictures
	b.c.Picture = func(context.Context) (string, error) { return "@p.png ", nil }
	b.key("ctrl+v")
	b.c.Picture = func(context.Context) (string, error) { return "", errors.New("the clipboard has no picture") }
	b.key("ctrl+v")
	if got := b.in.String(); got != "a@p.png b" {
		t.Errorf("the input is %q", got)
	}
	b.shows(t, "tenon: the clipboard has no picture")
}

// TestUX3_Answers checks each answer to a question, and keys that are pressed too early.
func TestUX3_Answers(t *testing.T) {
	ask := Ask{ID: "r/1.0", Head: "approval required", Fields: [][2]string{{"tool", "write"}}, Args: []string{"{", "}"},
		JSON: []byte(`{"n":9007199254740993}`), If: `args.n == 1`}
	for name, tt := range map[string]struct {
		keys []string
		want string
	}{
		"yes":                 {[]string{"y"}, "decide r/1.0 true    "},
		"at once, by Enter":   {[]string{"y", "enter"}, "decide r/1.0 true    "},
		"held down, one":      {[]string{"yyyy"}, "decide r/1.0 true    "},
		"taken back in time":  {[]string{"y", "esc", "WAIT"}, ""},
		"erased in time":      {[]string{"y", "backspace", "WAIT"}, ""},
		"a word with y":       {[]string{"yes, but not today", "WAIT", "enter"}, "steer yes, but not today"},
		"a word with Y":       {[]string{"You", "WAIT", "enter"}, "steer You"},
		"a word with e":       {[]string{"edit the other file", "WAIT", "enter"}, "steer edit the other file"},
		"a word with i":       {[]string{"if", "WAIT", "enter"}, "steer if"},
		"a key for the view":  {[]string{"y", "ctrl+o", "WAIT"}, ""},
		"typed into the edit": {[]string{"e", "WAIT", "x", "enter"}, ""},
		"session":             {[]string{"s", "WAIT", "enter"}, "decide r/1.0 true session   "},
		"always":              {[]string{"a", "WAIT", "a"}, "decide r/1.0 true always   "},
		"at once":             {[]string{"a", "enter", "a", "enter"}, ""},
		"held down":           {[]string{"s", "ssssss"}, ""},
		"not always":          {[]string{"a", "WAIT", "esc", "WAIT", "enter"}, ""},
		"but once":            {[]string{"a", "WAIT", "y"}, "decide r/1.0 true    "},
		"a message":           {[]string{"always", "WAIT", "enter"}, "steer always"},
		"two messages":        {[]string{"hello", "enter", "aenter", "WAIT", "enter"}, "steer aenter"},
		"if":                  {[]string{"i", "enter"}, "decide r/1.0 true always args.n == 1  "},
		"no":                  {[]string{"n", "enter"}, "decide r/1.0 false    "},
		"no, as":              {[]string{"n", "why not", "enter"}, "decide r/1.0 false   why not "},
		"edited":              {[]string{"e", "enter"}, "decide r/1.0 true    {\n  \"n\": 9007199254740993\n}"},
		"no object":           {[]string{"e", "ctrl+u", "x", "enter"}, ""},
		"taken back": {[]string{"n", "esc", "y"},
			"decide r/1.0 true    "},
		"other text": {[]string{"no", "backspace", "backspace"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(60, 20)
			b.backend.got, b.busy = []string{""}, true
			b.send(Asks{[]Ask{ask, {ID: "r/1.1"}}})
			b.shows(t, "approval required (1 of 2; Tab shows the next)", "tool       write", "2 waiting", "[y]es")
			b.key("y") // too early
			if len(b.backend.got) != 1 {
				t.Fatalf("a key that was typed before the question decided: %q", b.backend.got)
			}
			b.now = b.now.Add(time.Minute)
			if name == "other text" { // not an answer, because n asks for a reason first
				b.key("n", "o", "esc")
			} else {
				for _, key := range tt.keys {
					if key == "WAIT" {
						b.wait(time.Minute)
					} else {
						b.key(key)
					}
				}
			}
			b.wait(time.Minute)
			if got := b.backend.got[len(b.backend.got)-1]; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestUX3_RefusedAnswer checks that a refused condition, or refused arguments, stay in the input. The keys of the
// correction must not answer the question.
func TestUX3_RefusedAnswer(t *testing.T) {
	ask := Ask{ID: "r/1.0", Head: "approval required", Args: []string{"{}"}, JSON: []byte(`{"n":1}`), If: `args.n ==`}
	form := ask
	form.Inputs = []Input{{Name: "n", Value: []byte(`1`)}}
	for name, tt := range map[string]struct {
		ask  Ask
		open string
		want string
	}{
		"a condition":  {ask, "i", "decide r/1.0 true always args.n ==also  "},
		"arguments":    {ask, "e", ""},
		"a form":       {form, "e", ""},
		"why it is no": {ask, "n", "decide r/1.0 false   also "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(60, 20)
			b.backend.got, b.backend.refuse = []string{""}, errors.New("that is not valid")
			b.send(Asks{[]Ask{tt.ask}})
			b.now = b.now.Add(time.Minute)
			b.key(tt.open, "enter")
			b.shows(t, "that is not valid")
			b.now = b.now.Add(time.Minute)
			sent := len(b.backend.got)
			b.key("also")
			if b.mode == modeTalk || len(b.backend.got) != sent {
				t.Fatalf("the keys of a correction are read as an answer: %q", b.backend.got)
			}
			if tt.want == "" {
				return
			}
			b.backend.refuse = nil
			b.key("enter")
			if got := b.backend.got[len(b.backend.got)-1]; got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if b.mode != modeTalk {
				t.Error("the answer was taken and its input is still open")
			}
		})
	}
}

// TestUX3_LongArguments checks that a person cannot allow arguments before all of them were shown.
func TestUX3_LongArguments(t *testing.T) {
	b := newBench(60, 14)
	b.backend.got = []string{""}
	args := make([]string, 30)
	b.send(Asks{[]Ask{{ID: "1", Head: "approval required", Args: args}}})
	for i := range 30 {
		args[i] = fmt.Sprint("line ", i)
	}
	shown := map[string]bool{}
	for range 20 {
		for _, l := range b.screen() {
			shown[strings.TrimPrefix(l, "▌ ")] = true
		}
		b.now = b.now.Add(time.Minute)
		b.key("y")
		b.key("y", "y", "y") // a key that is held down does no more
		if len(b.backend.got) > 1 {
			t.Fatalf("a key decided before its pause: %q", b.backend.got)
		}
		if b.wait(quiet); len(b.backend.got) > 1 {
			break
		}
	}
	if got := b.backend.got[len(b.backend.got)-1]; !strings.HasPrefix(got, "decide 1 true") {
		t.Errorf("%q", got)
	}
	for _, l := range args {
		if !shown[l] {
			t.Errorf("%s was not on the screen before the call was allowed", l)
		}
	}
}

// TestUX2_Stream checks that a streamed answer is drawn and then replaced by the stored one, and that calls are grouped
// and can be unfolded.
func TestUX2_Stream(t *testing.T) {
	b := newBench(50, 24)
	b.send(Said{Person: true, Text: "question"})
	b.send(Delta{Thinking: true, Text: "first\nsecond thought"})
	b.shows(t, "thinking: second thought")
	b.send(Delta{Text: "# Title\n\nsome **bo"})
	b.shows(t, "Title", "some **bo")
	b.send(Delta{Text: "ld** text"})
	b.shows(t, "some bold text", "thought: second thought")
	b.send(Steered{Text: "a message"})
	b.send(Delta{Text: " that goes on"})
	b.shows(t, "some bold text that goes on", "> a message")
	b.send(Answered{Text: "stored"})
	b.shows(t, "stored\n\n> a message")
	if strings.Contains(strings.Join(b.screen(), "\n"), "bold") {
		t.Error("the pieces stay beside the stored answer")
	}
	for i := range 6 {
		b.send(Call{Key: fmt.Sprint(i), Name: "disk.read", Args: "{}", State: CallDone, Took: "1ms", Details: "secret\x1b[2J"})
	}
	b.shows(t, "● disk.read × 6 ok")
	b.key("ctrl+o")
	b.shows(t, "● disk.read {} 1ms", `secret\u{1b}[2J`, "first")
	b.send(Restart{Reason: "lost"})
	b.shows(t, "the answer starts over: lost")
}

// TestUX_Sizes checks that no size of the terminal causes a panic, and that no line is wider than the terminal.
func TestUX_Sizes(t *testing.T) {
	b := newBench(80, 24)
	b.send(Said{Text: strings.Repeat("word 東京 ", 50) + "\n\n| a | b |\n|---|---|\n| long cell text | more |\n\n```go\nfunc f() {}\n```"})
	b.send(Call{Key: "1", Name: "server.tool", Args: strings.Repeat("x", 200), Note: "a note"})
	b.send(Asks{[]Ask{{ID: "1", Head: "approval required", Fields: [][2]string{{"server", "s"}}, Args: []string{"{}"}}}})
	b.key("text of several", "alt+enter", "lines")
	for i := range 1000 {
		w, h := i%97, (i*7)%41
		b.send(tea.WindowSizeMsg{Width: w, Height: h})
		v := b.View()
		lines := strings.Split(v.Content, "\n")
		if h > 0 && w > 0 && len(lines) != h {
			t.Fatalf("%d × %d: %d lines", w, h, len(lines))
		}
		if v.Cursor != nil && (v.Cursor.Y >= h || v.Cursor.Y < 0 || v.Cursor.X >= w) {
			t.Fatalf("%d × %d: the cursor is at %d, %d", w, h, v.Cursor.X, v.Cursor.Y)
		}
		for _, l := range lines {
			if w >= 20 && markdown.Width(l) > w {
				t.Fatalf("%d × %d: %q", w, h, l)
			}
		}
	}
}

// TestUX_Much checks that a long conversation, many pieces and a huge line stay within the program's bounds.
func TestUX_Much(t *testing.T) {
	b := newBench(80, 24)
	for i := range 100_000 {
		b.send(Delta{Text: fmt.Sprintf("word%d ", i)})
		if i%10_000 == 0 {
			b.View()
		}
	}
	b.send(Delta{Text: strings.Repeat("x", 10<<20)})
	b.View()
	if n := b.blocks[0].text.Len(); n > maxBlock {
		t.Errorf("a block of %d bytes", n)
	}
	for i := range maxBlocks + 10 {
		b.send(Note{fmt.Sprint("note ", i)})
	}
	if len(b.blocks) > maxBlocks {
		t.Errorf("%d blocks", len(b.blocks))
	}
	b.shows(t, fmt.Sprint("note ", maxBlocks+9))
	b.key("pgup")
	b.send(Note{"new below"})
	if strings.Contains(strings.Join(b.screen(), "\n"), "new below") {
		t.Error("the view moved while the person reads above")
	}
	b.shows(t, "lines below")
	b.key("ctrl+f", fmt.Sprint("note ", 77))
	b.shows(t, "note 77")
}

// TestUX4_Modes checks that the mode of approval can be changed and is shown.
func TestUX4_Modes(t *testing.T) {
	b := newBench(60, 10)
	b.send(Status{Parts: []string{"agent", "model", strings.Repeat("long", 30)}, Down: []string{"web"}})
	b.key("shift+tab")
	b.shows(t, "down: web · allows · agent · model")
	if d := cmp.Diff([]string{"mode allows"}, b.backend.got); d != "" {
		t.Error(d)
	}
}

// BenchmarkUX_Key measures the time for one key press in a long conversation (figure TUI.key).
func BenchmarkUX_Key(bm *testing.B) {
	b := newBench(120, 40)
	for i := range 500 {
		b.send(Said{Text: fmt.Sprintf("# Part %d\n\n%s", i, strings.Repeat("some words of a text that wraps ", 30))})
	}
	b.View()
	for bm.Loop() {
		b.send(Delta{Text: "piece "})
		b.send(tea.KeyPressMsg{Code: 'a', Text: "a"})
		b.View()
		if len(b.in.text) > 1000 {
			b.in.set("")
		}
	}
}

// TestUX1_LinesBelow checks the number of lines below the visible ones.
func TestUX1_LinesBelow(t *testing.T) {
	b := newBench(60, 10)
	b.send(Note{Text: "first\n" + strings.Repeat("line\n", 28) + "last"})
	b.scroll(-3)
	b.shows(t, "── 3 lines below")
	b.scroll(2)
	b.shows(t, "── 1 line below")
	b.scroll(1)
	b.shows(t, "last")
}

// TestUX3_LeaveWaiting checks that leaving while a question waits does not stop the run, and that some commands work
// during the wait.
func TestUX3_LeaveWaiting(t *testing.T) {
	for name, tt := range map[string]struct {
		asks  bool
		cause error
	}{"waits": {true, ErrLeft}, "works": {false, context.Canceled}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(60, 20)
			b.c.Anytime = []string{"/cost"}
			ctx, stop := context.WithCancel(b.ctx)
			b.busy, b.stop = true, stop
			b.send(Call{Key: "r/1.0", Name: "a.b", Note: "waits for approval"})
			b.send(Decided{Key: "r/1.0", Note: "allowed, waits for the other decisions"})
			b.shows(t, "○ a.b allowed, waits")
			if tt.asks {
				b.send(Asks{List: []Ask{{ID: "1", Head: "approval required"}}})
			}
			for _, text := range []string{"/cost", "/exit"} {
				b.in.set(text)
				if cmd := b.enterKey(); cmd != nil {
					cmd()
				}
			}
			if len(b.backend.got) != 1 || b.backend.got[0] != "submit /cost" {
				t.Errorf("%q", b.backend.got)
			}
			if got := context.Cause(ctx); got != tt.cause {
				t.Errorf("the run ends with %v, want %v", got, tt.cause)
			}
		})
	}
}

func TestUX1_LongReasons(t *testing.T) {
	reason := "denied: the call was denied by local: " + strings.Repeat("not on a Friday evening, ", 20) + "as agreed"
	for name, c := range map[string]struct {
		note     string
		state    CallState
		unfolded bool
		lines    int    // at least
		end      string // of the last line
	}{
		"short":          {"denied: no", CallWarned, false, 1, "denied: no"},
		"long":           {reason, CallWarned, false, 1 + noteLines, "…"},
		"long, unfolded": {reason, CallWarned, true, 8, "as agreed"},
		"two lines":      {reason[:120], CallFailed, false, 3, reason[110:120]},
		"progress":       {reason, CallRunning, false, 1, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := Call{Name: "disk.write", Args: `{"path":"a"}`, State: c.state, Note: c.note}.draw(80, c.unfolded)
			if len(lines) < c.lines || !c.unfolded && len(lines) != c.lines {
				t.Errorf("%d lines, not %d:\n%s", len(lines), c.lines, strings.Join(lines, "\n"))
			}
			last := strings.TrimSuffix(lines[len(lines)-1], reset)
			if !strings.HasSuffix(last, c.end) {
				t.Errorf("the last line is %q, which does not end in %q", last, c.end)
			}
			for _, l := range lines {
				if markdown.Width(l) > 80 {
					t.Errorf("%q is wider than 80 columns", l)
				}
			}
		})
	}
}

// TestUX3_AfterPaste checks that text which a terminal sends while a large paste is handled answers no question.
func TestUX3_AfterPaste(t *testing.T) {
	b := newBench(60, 20)
	b.backend.got = []string{""}
	b.busy = true
	b.waits(Ask{ID: "1", Head: "approval required", Args: []string{"{}"}})
	b.send(tea.PasteMsg{Content: strings.Repeat("x ", 1000)})
	b.key("enter", "a", "enter", "y")
	for _, got := range b.backend.got {
		if strings.HasPrefix(got, "decide") {
			t.Errorf("typed text is an answer: %q", b.backend.got)
		}
	}
	b.in.set("")
	b.now = b.now.Add(time.Minute)
	b.send(Note{Text: "a slow message"})
	b.now = b.now.Add(time.Second)
	b.View()
	b.key("y")
	if got := b.backend.got[len(b.backend.got)-1]; strings.HasPrefix(got, "decide") {
		t.Errorf("a key that was typed before the screen was drawn is an answer: %q", got)
	}
}

// TestUX_LargePaste checks that a key costs about the same whatever text the input holds.
func TestUX_LargePaste(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	b := newBench(80, 24)
	begin := time.Now()
	b.send(tea.PasteMsg{Content: strings.Repeat("x ", 250_000)})
	b.View()
	for range 50 {
		b.key("y")
		b.View()
	}
	if took := time.Since(begin); took > 5*time.Second { // about 0.1 s; with a layout per line, hours
		t.Errorf("a paste of 500 KB and 50 keys took %v", took)
	}
}
