package tui

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// quiet is the pause in typing that must come before a key may answer a question that has just appeared. A key without
// this pause was probably meant for the input.
const quiet = 500 * time.Millisecond

// ask replaces the list of pending questions.
func (m *model) ask(list []Ask) tea.Cmd {
	m.asks = list
	first := ""
	if len(list) > 0 {
		first = list[0].ID
	}
	if first == m.asked {
		return nil
	}
	if m.mode.decides() {
		m.leaveMode() // the question was decided elsewhere
	}
	m.asked, m.shownAt, m.deciding = first, m.c.Now(), false
	if first != "" {
		m.settle()
		if !m.focused {
			return tea.Raw("\a")
		}
	}
	return nil
}

// askKey handles a key while a question is pending and the input is empty. It reports whether the key was used.
func (m *model) askKey(name, text string, before time.Time) (tea.Cmd, bool) {
	a := m.asks[0]
	now := m.c.Now()
	allows := "ysai"
	if len(a.Inputs) > 0 {
		allows += "e" // because the form shows only a part of long values
	}
	word := strings.ToLower(text)
	known := a.Form && name == "enter" || word != "" && strings.Contains(a.letters(), word)
	switch {
	case !known:
		return nil, false
	case now.Sub(m.shownAt) < quiet || now.Sub(before) < quiet && before.After(m.shownAt.Add(-quiet)) &&
		before.Before(m.shownAt):
		return nil, true // typed before the person could read the question
	case m.deciding:
		return nil, true
	case m.hidden > 0 && m.listed != a.ID && strings.Contains(allows, word) && word != "":
		m.listed = a.ID // a call is never allowed before all of its arguments were shown
		m.push(blockNote, "all arguments of "+a.Head+":\n"+strings.Join(a.Args, "\n"))
		m.follow, m.note = true, "the conversation shows all arguments; press the key again"
		return nil, true
	}
	switch word {
	case "y":
		return m.decide(Ruling{Allow: true}), true
	case "s":
		return m.decide(Ruling{Allow: true, Remember: "session"}), true
	case "a":
		return m.decide(Ruling{Allow: true, Remember: "always"}), true
	case "i":
		m.enter(modeIf)
		m.in.set(a.If)
	case "e":
		if len(a.Inputs) > 0 {
			m.openForm(a)
			break
		}
		m.enter(modeEdit)
		m.in.set(indented(a.JSON))
	case "n":
		if a.Limit || a.Form {
			return m.decide(Ruling{}), true
		}
		m.enter(modeReason)
		m.in.set("")
	default:
		return m.decide(Ruling{Allow: true}), true // the Enter key: the question is asked in plain lines
	}
	return nil, true
}

// letters are the keys that answer a question.
func (a Ask) letters() string {
	switch {
	case a.Form:
		return "n"
	case a.Limit:
		return "yn"
	case a.If != "":
		return "ysaine"
	}
	return "ysane"
}

// keysOf returns the line that explains these keys.
func (a Ask) keysOf() string {
	switch {
	case a.Form:
		return "[Enter] answer in plain lines  [n] decline"
	case a.Limit:
		return "[y]es  [n]o"
	case a.If != "":
		return "[y]es  this [s]ession  [a]lways  always [i]f …  [n]o  [e]dit"
	}
	return "[y]es  this [s]ession  [a]lways  [n]o  [e]dit"
}

// indented formats arguments for editing. It keeps the order of members and the digits of numbers.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// decide passes an answer to the backend.
func (m *model) decide(r Ruling) tea.Cmd {
	a := m.asks[0]
	m.deciding, m.note = true, ""
	return m.do(func() tea.Msg { return decidedMsg{a.ID, m.c.Backend.Decide(m.ctx, a, r)} })
}

// decideWith passes an answer to the backend. text is the text that the person entered in the current mode.
func (m *model) decideWith(text string) tea.Cmd {
	if m.deciding {
		return nil
	}
	r := Ruling{}
	text = strings.TrimSpace(text)
	switch m.mode {
	case modeReason:
		r.Reason = text
	case modeIf:
		if text == "" {
			m.note = "write a condition, such as args.city == \"London\""
			return nil
		}
		r = Ruling{Allow: true, Remember: "always", If: text}
	case modeEdit:
		var o map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &o); err != nil || o == nil {
			m.note = "the arguments must be a JSON object"
			if err != nil {
				m.note += ": " + err.Error()
			}
			return nil
		}
		r = Ruling{Allow: true, Args: json.RawMessage(text)}
	case modeForm:
		if len(m.asks) == 0 {
			break
		}
		args, ok := m.sendForm()
		if !ok {
			return nil
		}
		r = Ruling{Allow: true, Args: args}
	}
	if len(m.asks) == 0 {
		m.leaveMode()
		return nil
	}
	return m.decide(r) // the text stays until the backend has accepted it, so that further typing is not read as keys
}
