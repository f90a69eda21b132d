package tui

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// numbered is a question whose arguments have lines that fit every width from ten columns on.
func numbered() (a Ask, lines []string) {
	for i := range 12 {
		lines = append(lines, fmt.Sprintf("line%02d", i))
	}
	return Ask{ID: "r/1.0", Head: "approval required", Fields: [][2]string{{"server", "disk"}, {"tool", "write"}}, Args: lines,
		JSON: []byte("{}")}, lines
}

// TestUX3_TinyTerminal checks that all lines of a question are on the screen before a key allows the call, at any size,
// or that the call cannot be allowed.
func TestUX3_TinyTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {60, 14}, {40, 10}, {40, 9}, {30, 8}, {20, 5}, {20, 4}, {10, 10}, {10, 5}, {10, 3},
		{80, 3}, {9, 9}, {5, 20}, {80, 2}, {80, 1}, {1, 1}} {
		for _, key := range []string{"y", "s", "a"} {
			t.Run(fmt.Sprintf("%dx%d_%s", size[0], size[1], key), func(t *testing.T) {
				b := newBench(size[0], size[1])
				b.backend.got = []string{""}
				a, lines := numbered()
				b.waits(a)
				shown := ""
				for range 100 {
					shown += strings.Join(b.screen(), "\n")
					b.key(key)
					if b.wait(time.Second); len(b.backend.got) > 1 {
						break
					}
				}
				if small := size[0] < 10 || size[1] < 3; small {
					if len(b.backend.got) > 1 {
						t.Fatalf("a call was allowed that cannot be read: %q", b.backend.got)
					}
					b.key("n", "enter") // it can still be denied
					if got := b.backend.got[len(b.backend.got)-1]; !strings.HasPrefix(got, "decide r/1.0 false") {
						t.Errorf("%q", got)
					}
					b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
					return
				}
				if len(b.backend.got) == 1 {
					t.Fatalf("the call cannot be allowed:\n%s", strings.Join(b.screen(), "\n"))
				}
				for _, l := range append([]string{"disk", "write"}, lines...) {
					if !strings.Contains(shown, l) {
						t.Errorf("%s was not on the screen", l)
					}
				}
			})
		}
	}
}

// TestUX3_TinyStorm resizes the terminal while a question waits and keys are pressed. The call must not be allowed
// before all of its lines were on the screen for half a second at one width.
func TestUX3_TinyStorm(t *testing.T) {
	for seed := range uint64(40) {
		b := newBench(20, 5)
		b.backend.got = []string{""}
		a, lines := numbered()
		b.waits(a)
		random := rand.New(rand.NewPCG(seed, 1))
		steady := map[string]bool{} // lines that were on the screen when a key was pressed, half a second after a change
		for range 3000 {
			if b.now.Sub(b.shownAt) >= quiet {
				screen := strings.Join(b.screen(), "\n")
				for _, l := range lines {
					steady[l] = steady[l] || strings.Contains(screen, l)
				}
			}
			switch random.IntN(4) {
			case 0:
				b.send(tea.WindowSizeMsg{Width: random.IntN(30), Height: random.IntN(9)})
			case 1:
				b.key("down")
			default:
				b.key("y")
			}
			if len(b.backend.got) > 1 {
				break
			}
			b.now = b.now.Add(time.Duration(random.IntN(600)) * time.Millisecond)
			v := b.View()
			if n := strings.Count(v.Content, "\n") + 1; b.width > 0 && b.height > 0 && n != b.height {
				t.Fatalf("%d × %d: %d lines", b.width, b.height, n)
			}
		}
		for _, l := range lines {
			if len(b.backend.got) > 1 && !steady[l] {
				t.Errorf("seed %d: the call was allowed, and %s was not on the screen", seed, l)
			}
		}
	}
}

// TestUX3_Requests answers the requests of servers: forms, pages, and several at once.
func TestUX3_Requests(t *testing.T) {
	several := formAsk()
	several.Requests = append(pageAsk().Requests, several.Requests...)
	empty := formAsk()
	empty.Requests[0].Inputs = nil
	broken := formAsk()
	broken.Requests[0].Broken = true
	for name, tt := range map[string]struct {
		ask  Ask
		keys []string
		want string
	}{
		"a form": {formAsk(), []string{"a", "2026-12-24", "enter", "4", "enter", "right", "enter", "by the window", "enter"},
			`q={"date":"2026-12-24","persons":4,"seat":"out","note":"by the window"} `},
		"the defaults":       {formAsk(), []string{"a", "2026-12-24", "enter", "enter", "enter", "enter"}, `q={"date":"2026-12-24","persons":2,"seat":"in"} `},
		"an edited default":  {formAsk(), []string{"a", "2026-12-24", "enter", "backspace", "1", "1", "up", "up", "enter"}, `q={"date":"2026-12-24","persons":11,"seat":"in"} `},
		"a cleared default":  {formAsk(), []string{"a", "2026-12-24", "enter", "ctrl+u", "enter", "enter", "enter"}, `q={"date":"2026-12-24","persons":2,"seat":"in"} `},
		"opened with Enter":  {formAsk(), []string{"enter", "2026-12-24", "up", "enter"}, `q={"date":"2026-12-24","persons":2,"seat":"in"} `},
		"left and reopened":  {formAsk(), []string{"a", "2026-12-24", "esc", "a", "up", "enter"}, `q={"date":"2026-12-24","persons":2,"seat":"in"} `},
		"one is missing":     {formAsk(), []string{"a", "up", "enter"}, ""},
		"one is wrong":       {formAsk(), []string{"a", "2026-12-32", "up", "enter"}, ""},
		"no JSON to edit":    {formAsk(), []string{"a", "2026-12-24", "ctrl+x", "up", "enter"}, `q={"date":"2026-12-24","persons":2,"seat":"in"} `},
		"declined":           {formAsk(), []string{"d"}, "decide r/1.0/q1 false    "},
		"cancelled":          {formAsk(), []string{"c"}, "cancel"},
		"no yes for a form":  {formAsk(), []string{"y"}, ""},
		"without fields":     {empty, []string{"y"}, "q={} "},
		"a page":             {pageAsk(), []string{"y"}, "decide r/1.0/q1 true    "},
		"a page declined":    {pageAsk(), []string{"p", "WAIT", "d"}, "decide r/1.0/q1 false    "},
		"a page cancelled":   {pageAsk(), []string{"c"}, "cancel"},
		"several":            {several, []string{"y", "WAIT", "a", "2026-12-24", "up", "enter"}, `q={"date":"2026-12-24","persons":2,"seat":"in"} `},
		"several, declined":  {several, []string{"y", "WAIT", "d"}, "decide r/1.0/q1 false    "},
		"the second at once": {several, []string{"y", "d"}, ""}, // typed before the second request could be read
		"not readable":       {broken, []string{"a", "y"}, ""},
		"a message":          {formAsk(), []string{"and this?"}, ""},
		"declined in a word": {formAsk(), []string{"do it"}, ""},
		"its refusal":        {broken, []string{"d"}, "decide r/1.0/q1 false    "},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(80, 40)
			b.backend.got = []string{""}
			b.waits(tt.ask)
			for _, k := range tt.keys {
				if k == "WAIT" {
					b.wait(time.Minute)
					continue
				}
				b.key(k)
			}
			b.wait(time.Minute)
			got := b.backend.got[len(b.backend.got)-1]
			if tt.want == "" && got != "" || !strings.HasSuffix(got, tt.want) {
				t.Errorf("%q, want %q\n%s", got, tt.want, strings.Join(b.screen(), "\n"))
			}
		})
	}
}

// TestUX3_RequestEnds checks that a form whose question ends elsewhere closes with a note, and that typed text is not
// read as keys. A refused answer keeps what was typed.
func TestUX3_RequestEnds(t *testing.T) {
	b := newBench(80, 40)
	b.backend.got = []string{""}
	b.waits(formAsk())
	b.key("a", "2026-12")
	b.send(Asks{})
	b.shows(t, "the question has ended: it was decided elsewhere, or its call is over")
	if b.mode != modeTalk || b.in.String() != "" {
		t.Errorf("mode %d, input %q", b.mode, b.in.String())
	}
	b.waits(formAsk())
	b.backend.refuse = errors.New("the answer does not fit the form")
	b.key("a", "2026-12-24", "up", "enter")
	b.shows(t, "the answer does not fit the form", "2026-12-24")
	if b.mode != modeForm {
		t.Error("the form is closed")
	}
	b.backend.refuse = nil
	b.key("enter")
	if b.mode != modeTalk || len(b.backend.got) != 3 {
		t.Errorf("mode %d, %q", b.mode, b.backend.got)
	}
}

// TestUX4_StopReturns checks that messages which a stopped run does not take return to the input, in front of its text,
// whether the run or the program reports it, and that none of them becomes the next question.
func TestUX4_StopReturns(t *testing.T) {
	b := newBench(60, 20)
	b.busy, b.round, b.backend.got, b.stop = true, 1, []string{""}, func() {}
	b.steered = []string{"one", "two"}
	b.queue = []string{"four"}
	b.in.set("draft")
	b.key("ctrl+c")
	b.send(Withdrawn{Text: "one"})
	b.send(steerMsg{"two", 1, ErrLate})
	b.send(idleMsg{})
	b.send(steerMsg{"five", 1, ErrLate}) // its answer came after the end of the run
	if got := b.in.String(); got != "five\none\ntwo\nfour\ndraft" || len(b.queue) != 0 || b.busy {
		t.Errorf("the input has %q, %q waits, busy %v", got, b.queue, b.busy)
	}
	if got := (&Program{model: b.model}).Unsent(); len(got) != 4 {
		t.Errorf("unsent: %q", got)
	}
}
