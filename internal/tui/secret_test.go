package tui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestUX10_Secret checks that a hidden text is neither shown nor kept, and that Esc and Ctrl-C cancel only its question.
func TestUX10_Secret(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want secretText
	}{
		"typed":           {[]string{"sk-1 2", "enter"}, secretText{text: "sk-1 2"}},
		"corrected":       {[]string{"ab", "left", "backspace", "c", "enter"}, secretText{text: "cb"}},
		"cleared":         {[]string{"ab", "ctrl+u", "c", "enter"}, secretText{text: "c"}},
		"nothing at once": {[]string{"enter", "c", "enter"}, secretText{text: "c"}},
		"Esc":             {[]string{"sk-1", "esc"}, secretText{err: ErrNoSecret}},
		"Ctrl-C":          {[]string{"sk-1", "ctrl+c"}, secretText{err: ErrNoSecret}},
		"no other mode":   {[]string{"sk-1", "ctrl+f", "ctrl+r", "tab", "up", "enter"}, secretText{text: "sk-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(60, 12)
			b.backend.got = []string{""}
			b.key("a draft")
			b.working(1)
			got := make(chan secretText, 1)
			b.send(secretMsg{title: "API key of openai", got: got})
			b.shows(t, "API key of openai", "Esc")
			for i, key := range tt.keys {
				if i == len(tt.keys)-1 && strings.Contains(strings.Join(b.screen(), "\n"), "sk-1") {
					t.Errorf("the text is shown:\n%s", strings.Join(b.screen(), "\n"))
				}
				b.key(key)
			}
			select {
			case s := <-got:
				if s != tt.want {
					t.Errorf("%+v, want %+v", s, tt.want)
				}
			default:
				t.Fatal("there is no answer")
			}
			if b.in.String() != "a draft" || b.mode != modeTalk || b.stopped || b.ctx.Err() != nil {
				t.Errorf("the input is %q, stopped %v, left %v", b.in.String(), b.stopped, b.ctx.Err())
			}
			if len(b.c.History) != 2 || len(b.backend.got) != 1 {
				t.Errorf("history %q, the backend got %q", b.c.History, b.backend.got)
			}
		})
	}
}

// TestUX10_SecretPasted checks that a pasted text is hidden, too, and that the end of the work closes the question.
func TestUX10_SecretPasted(t *testing.T) {
	b := newBench(60, 12)
	b.working(1)
	got := make(chan secretText, 1)
	b.send(secretMsg{title: "API key of openai", got: got})
	b.send(tea.PasteMsg{Content: "sk-1\n"})
	if screen := strings.Join(b.screen(), "\n"); strings.Contains(screen, "sk-1") || !strings.Contains(screen, "••••") {
		t.Errorf("it is shown:\n%s", screen)
	}
	b.send(idleMsg{})
	if s := <-got; s.err != ErrNoSecret || b.mode != modeTalk {
		t.Errorf("%+v, mode %v", s, b.mode)
	}
}

// TestUX3_EarlyKey checks that the panel says when keys do not decide yet, and that an answer which became a message is
// not sent to the model.
func TestUX3_EarlyKey(t *testing.T) {
	b := newBench(80, 20)
	b.backend.got = []string{""}
	b.working(1)
	b.send(Asks{[]Ask{writeAsk}})
	b.shows(t, "in a moment: [y]es")
	b.wait(time.Minute)
	b.key("hello")
	b.shows(t, "send or clear your text to answer: [y]es")
	b.key("ctrl+u")
	b.shows(t, "in a moment: [y]es")
	b.wait(quiet / 2)
	b.key("y", "enter")
	b.shows(t, "this was not sent to the model", "press the key y alone")
	if len(b.backend.got) != 1 || b.in.String() != "" {
		t.Fatalf("the backend got %q", b.backend.got)
	}
	b.wait(quiet)
	if screen := strings.Join(b.screen(), "\n"); strings.Contains(screen, "in a moment") {
		t.Errorf("the keys are still off:\n%s", screen)
	}
	b.key("y")
	b.wait(quiet)
	if len(b.backend.got) != 2 || !strings.HasPrefix(b.backend.got[1], "decide r/1.0 true") {
		t.Errorf("the backend got %q", b.backend.got)
	}
	for _, text := range []string{"y", "N", "yes", "no.", "a"} {
		if b.deciding = false; !b.lone(text) {
			t.Errorf("%q is a message", text)
		}
	}
	for _, text := range []string{"yes, but", "nothing", "1", "q"} {
		if b.lone(text) {
			t.Errorf("%q is an answer", text)
		}
	}
}

// TestUX3_SecondQuestion checks that Tab shows the other questions that wait, and that the answer goes to the one on
// the screen.
func TestUX3_SecondQuestion(t *testing.T) {
	b := newBench(80, 24)
	b.backend.got = []string{""}
	list := make([]Ask, 3)
	for i, id := range []string{"r/1.0", "r/1.1", "r/1.2"} {
		list[i] = Ask{ID: id, Head: "approval required", Args: []string{id}}
	}
	b.waits(list...)
	b.shows(t, "(1 of 3; Tab shows the next)", "r/1.0")
	b.key("tab")
	b.shows(t, "(2 of 3", "r/1.1", "in a moment")
	b.send(Asks{list})
	b.wait(time.Minute)
	b.key("tab")
	b.shows(t, "(3 of 3", "r/1.2")
	b.wait(time.Minute)
	b.key("y")
	b.wait(time.Minute)
	if got := b.backend.got[len(b.backend.got)-1]; !strings.HasPrefix(got, "decide r/1.2 true") {
		t.Errorf("%q", got)
	}
	b.send(Asks{list[:2]})
	b.shows(t, "(1 of 2", "r/1.0")
	b.key("tab", "tab")
	b.shows(t, "(1 of 2", "r/1.0")
}

// TestUX3_ReplacedQuestion checks that a question whose place another one takes is not answered by a key that was meant
// for the first: keys count only after the person could read the new one.
func TestUX3_ReplacedQuestion(t *testing.T) {
	b := newBench(120, 40)
	b.backend.got = []string{""}
	b.waits(writeAsk)
	b.wait(time.Minute)
	other := writeAsk
	other.Args, other.JSON = []string{`{"path": "/etc/passwd"}`}, json.RawMessage(`{"path":"/etc/passwd"}`)
	b.send(Asks{[]Ask{other}})
	b.key("y")
	b.wait(time.Minute)
	if len(b.backend.got) > 1 {
		t.Fatalf("the new question is answered at once: %v", b.backend.got)
	}
	b.shows(t, "/etc/passwd")
	b.key("y")
	b.wait(time.Minute)
	if len(b.backend.got) != 2 {
		t.Errorf("the new question is not answered: %v", b.backend.got)
	}
}

// answerScreens are golden screens of questions whose keys do not answer yet, of hidden input and of commands.
var answerScreens = []goldenScreen{
	{item: "3", name: "approval_early", do: func(b *bench) { b.working(3); b.send(Asks{[]Ask{writeAsk}}) }},
	{item: "3", name: "approval_lone_key", do: func(b *bench) { b.waits(writeAsk); b.key("x", "backspace", "y", "enter") }},
	{item: "3", name: "approvals_second", do: func(b *bench) {
		second := writeAsk
		second.ID, second.Args, second.Fields = "r/1.1", []string{`{"path": "second.txt"}`}, [][2]string{{"server", "disk"}, {"tool", "remove"}}
		b.waits(writeAsk, second)
		b.key("tab")
	}},
	{item: "10", name: "commands", do: func(b *bench) {
		b.c.Commands = [][2]string{{"/help", "these commands"}, {"/model NAME", "answer with another model; without a name, choose one"},
			{"/new", "begin a new conversation"}, {"/resume ID", "continue another conversation"}, {"/retry", "ask again"},
			{"/undo", "continue in a copy that ends before the last question"}, {"/cost", "the tokens and the cost so far"}, {"/copy", "copy the last answer"}}
		b.key("/")
	}},
	{item: "10", name: "secret", do: func(b *bench) {
		b.key("/login openai")
		b.working(1)
		b.send(secretMsg{title: "API key of openai", got: make(chan secretText, 1)})
		b.key("sk-typed-1")
	}},
}
