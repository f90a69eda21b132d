package tui

import (
	"fmt"
	"strings"
	"testing"
)

func TestUX4_Picker(t *testing.T) {
	cities := Choices{Title: "a city", Command: "/city", Items: []Choice{{Value: "berlin", About: "Germany"},
		{Value: "london", About: "England", Now: true}, {Value: "paris", About: "France"}}}
	for name, c := range map[string]struct {
		keys  []string
		got   string // of the backend
		shows string
	}{
		"the value that applies": {[]string{"enter"}, "/city london", ""},
		"down":                   {[]string{"down", "enter"}, "/city paris", ""},
		"around the end":         {[]string{"down", "down", "enter"}, "/city berlin", ""},
		"around the start":       {[]string{"up", "up", "enter"}, "/city paris", ""},
		"a search":               {[]string{"fra", "enter"}, "/city paris", ""},
		"a search taken back":    {[]string{"fx", "backspace", "enter"}, "/city paris", ""},
		"nothing found":          {[]string{"xyz", "enter"}, "", "nothing contains this text"},
		"escape":                 {[]string{"down", "esc"}, "", "> draft"},
		"interrupt":              {[]string{"ctrl+c"}, "", "> draft"},
		"shown":                  {[]string{"p"}, "", "▸ paris  France"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(60, 16)
			b.key("draft")
			b.send(cities)
			b.shows(t, "a city", "Enter chooses")
			b.key(c.keys...)
			if got := submitted(b); got != c.got {
				t.Errorf("it submits %q, not %q", got, c.got)
			}
			b.shows(t, c.shows)
		})
	}
}

// TestUX4_PickerWhileBusy makes a choice before the running command has ended. The choice must wait for its end.
func TestUX4_PickerWhileBusy(t *testing.T) {
	b := newBench(60, 16)
	b.busy, b.stop = true, func() {}
	b.send(Choices{Title: "a city", Command: "/city", Items: []Choice{{Value: "berlin"}}})
	b.key("enter")
	if got := submitted(b); got != "" {
		t.Fatalf("it submits %q at once", got)
	}
	b.send(idleMsg{})
	if got := submitted(b); got != "/city berlin" || len(b.queue) != 0 {
		t.Errorf("it submits %q, and %q is queued", got, b.queue)
	}
}

// TestUX1_QueuedApart checks that queued messages are submitted one after the other, each as its own question.
func TestUX1_QueuedApart(t *testing.T) {
	b := newBench(60, 16)
	b.busy, b.stop, b.queue = true, func() {}, []string{"one", "two"}
	b.send(idleMsg{})
	if got := submitted(b); got != "one" {
		t.Errorf("it submits %q first", got)
	}
	b.send(idleMsg{})
	if got := submitted(b); got != "two" || len(b.queue) != 0 {
		t.Errorf("it submits %q, and %q is queued", got, b.queue)
	}
}

// submitted returns the last submitted command as the conversation shows it.
func submitted(b *bench) string {
	if n := len(b.blocks); n > 0 && b.busy {
		return b.blocks[n-1].text.String()
	}
	return ""
}

// TestUX4_PickerDraws checks that untrusted values are escaped, and that the selected value of a long list stays
// visible.
func TestUX4_PickerDraws(t *testing.T) {
	var items []Choice
	for i := range 30 {
		items = append(items, Choice{Value: fmt.Sprintf("value-%02d\x1b[2J", i), About: strings.Repeat("about ", 30)})
	}
	b := newBench(50, 14)
	b.send(Choices{Title: "many\x1b]0;x\x07", Command: "/many", Items: items})
	for range 25 {
		b.key("down")
	}
	b.shows(t, "▸ value-25", "more; Up and Down select")
	for _, l := range strings.Split(b.View().Content, "\n") {
		if strings.Contains(l, "\x1b[2J") || strings.Contains(l, "\x1b]0;") {
			t.Errorf("%q has an escape sequence of the value", l)
		}
	}
	if got := len(b.screen()); got > 14 {
		t.Errorf("%d lines are drawn on 14", got)
	}
	tiny := newBench(12, 4)
	tiny.send(Choices{Title: "many", Command: "/many", Items: items})
	if got := len(tiny.screen()); got > 4 {
		t.Errorf("%d lines are drawn on 4", got)
	}
	busy := newBench(50, 14)
	busy.enter(modeFind)
	busy.send(Choices{Title: "many", Command: "/many", Items: items[:2]})
	if busy.mode != modeFind || busy.pick != nil {
		t.Error("the picker replaces a search")
	}
}
