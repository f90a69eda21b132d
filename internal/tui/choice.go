package tui

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// A key answers a question only if it is pressed alone. A letter that others follow at once begins a message, which a
// person wrote without seeing the question. So an answer waits for a pause of quiet, or for Enter, before it counts.

// aloneMsg says that the pause after the choice with this number is over.
type aloneMsg int

// after returns a command that sends a message after a pause.
func after(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// chooseKey keeps the key of an answer until it has been alone for a pause.
func (m *model) chooseKey(letter string) tea.Cmd {
	m.choice, m.chosenAt = letter, m.c.Now()
	m.choices++
	return m.later(quiet, aloneMsg(m.choices))
}

// unchoose drops an answer that does not count yet.
func (m *model) unchoose() { m.choice, m.lasting, m.opener = "", "", "" }

// alone handles the key after the one of an answer. Enter confirms the answer. The same key again, which may be held
// down, begins another pause. Any other letter makes both a message, and another key takes the answer back. It reports
// whether the key was used.
func (m *model) alone(name, text string) (tea.Cmd, bool) {
	letter := m.choice
	switch {
	case name == "enter":
		return m.chosen(), true
	case strings.EqualFold(text, letter):
		return m.chooseKey(letter), true
	}
	m.choice = ""
	if text != "" {
		m.in.insert(letter)
		return nil, false
	}
	return nil, name == "esc" || name == "backspace"
}

// chosen carries out the answer whose key was pressed.
func (m *model) chosen() tea.Cmd {
	word := strings.ToLower(m.choice)
	m.choice = ""
	if word == "" || len(m.asks) == 0 || m.deciding || m.mode != modeTalk {
		return nil
	}
	q := m.request()
	switch {
	case word == "d" && q != nil, word == "n" && q == nil:
		return m.decide(Ruling{})
	case word == "c" && q != nil:
		return m.decide(Ruling{Cancel: true})
	case word == "p" && q != nil:
		m.note = "the address is in the terminal's clipboard, if the terminal allows this"
		return tea.SetClipboard(q.Copy)
	case word != "y":
		return nil
	case q == nil:
		return m.decide(Ruling{Allow: true})
	case q.Form:
		return m.accept(json.RawMessage("{}"))
	}
	return m.accept(nil)
}

// unopen handles the first key in an input that the key of an answer has opened. If it is a letter that follows at
// once, both begin a message, and the input is closed again: its text could otherwise be sent as an answer.
func (m *model) unopen(text string) {
	letter := m.opener
	m.opener = ""
	begins := strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || r == ' ' })
	if letter == "" || !begins || !m.mode.decides() || m.c.Now().Sub(m.chosenAt) >= quiet {
		return
	}
	m.leaveMode()
	m.in.insert(letter)
}

// choiceWords describe an answer that waits for a pause.
const choiceWords = "in a moment this answers; Enter does at once, Esc does not, and other letters make it a message"
