package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestUX1_NewLine checks the keys that add a line to a message. Shift-Enter is known where the terminal reports it.
func TestUX1_NewLine(t *testing.T) {
	for name, key := range map[string]tea.KeyPressMsg{"Alt-Enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
		"Shift-Enter": {Code: tea.KeyEnter, Mod: tea.ModShift}, "Ctrl-J": {Code: 'j', Mod: tea.ModCtrl}} {
		b := newBench(40, 12)
		b.key("a")
		b.send(key)
		b.key("b")
		if got := b.in.String(); got != "a\nb" || len(b.backend.got) > 0 {
			t.Errorf("%s: %q, %v", name, got, b.backend.got)
		}
	}
}

// TestUX4_Wheel checks that the mouse wheel scrolls the conversation, and that its end is followed again below.
func TestUX4_Wheel(t *testing.T) {
	b := newBench(40, 12)
	b.send(Note{strings.Repeat("line\n", 40) + "the end"})
	b.shows(t, "the end")
	for range 3 {
		b.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	}
	if strings.Contains(strings.Join(b.screen(), "\n"), "the end") {
		t.Error("the wheel does not scroll up")
	}
	for range 3 {
		b.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	}
	b.send(Note{"and more"})
	b.shows(t, "the end", "and more")
}

// TestUX4_Copied checks that a copied text goes to the terminal's clipboard (OSC 52), which works over ssh.
func TestUX4_Copied(t *testing.T) {
	b := newBench(40, 12)
	_, cmd := b.Update(Copied{Text: "the answer"})
	if cmd == nil {
		t.Fatal("nothing is sent to the terminal")
	}
	if got, want := fmt.Sprintf("%T %v", cmd(), cmd()), fmt.Sprintf("%T %v", tea.SetClipboard("the answer")(),
		tea.SetClipboard("the answer")()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestUX4_Notified checks that the terminal rings when an approval waits or a long run ends while the person looks
// elsewhere, and is quiet otherwise.
func TestUX4_Notified(t *testing.T) {
	for name, tt := range map[string]struct {
		focused bool
		took    time.Duration // of a run that ends; 0: an approval waits
		want    bool
	}{
		"an approval":           {want: true},
		"an approval in sight":  {focused: true},
		"a long run":            {took: time.Minute, want: true},
		"a long run in sight":   {took: time.Minute, focused: true},
		"a run that ends early": {took: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(80, 20)
			if !tt.focused {
				b.send(tea.BlurMsg{})
			}
			b.working(1)
			var msg tea.Msg = Asks{[]Ask{writeAsk}}
			if tt.took > 0 {
				b.now = b.began.Add(tt.took)
				msg = idleMsg{}
			}
			_, cmd := b.Update(msg)
			rings := cmd != nil && fmt.Sprint(cmd()) == fmt.Sprint(tea.Raw("\a")())
			if rings != tt.want {
				t.Errorf("it rings: %v", rings)
			}
		})
	}
}
