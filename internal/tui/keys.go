package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// press handles a key.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.Keystroke()
	before := m.lastKey
	m.lastKey = m.c.Now()
	if name != "ctrl+c" {
		m.leaving = time.Time{}
	}
	switch {
	case name == "ctrl+c":
		m.unchoose()
		m.switching = false
		return m.interrupt()
	case m.switching && m.confirmMode(name, m.lastKey):
		return nil
	case m.mode == modeHistory:
		m.historyKey(name, k.Text)
		return nil
	case m.mode == modeFind:
		m.findKey(name, k.Text)
		return nil
	case m.mode == modePick:
		return m.pickKey(name, k.Text)
	case m.mode == modeSecret:
		return m.secretKey(name, k.Text)
	case m.mode == modeTalk && m.asked != "" && len(m.in.text) == 0:
		if cmd, ok := m.askKey(name, k.Text, before); ok {
			return cmd
		}
	}
	m.unopen(k.Text)
	if m.mode == modeForm {
		m.note = ""
		if m.formKey(name) {
			return nil
		}
		if m.form.offered && k.Text != "" {
			m.in.set("")
		}
		m.form.offered = false
	}
	if cmd, ok := m.viewKey(name); ok {
		return cmd
	}
	if m.mode == modeTalk {
		m.typedAt = m.lastKey
	}
	return m.inputKey(name, k.Text)
}

// twice is the time in which a second Ctrl-C leaves the program.
const twice = 2 * time.Second

const noteStopping = "stopping; Ctrl-C again leaves"

// quit leaves the program. A run with pending questions keeps waiting.
func (m *model) quit() tea.Cmd {
	if len(m.asks) > 0 {
		m.leave(ErrLeft)
	} else {
		m.leave(nil)
	}
	return tea.Quit
}

// interrupt handles Ctrl-C: it leaves a mode, stops the work, clears the input, or leaves the program.
func (m *model) interrupt() tea.Cmd {
	now := m.c.Now()
	again := !m.leaving.IsZero() && now.Sub(m.leaving) < twice
	m.leaving = now
	switch {
	case again:
		m.leave(nil)
		return tea.Quit
	case m.mode != modeTalk:
		m.leaveMode()
	case m.busy && !m.stopped:
		m.stopped, m.stoppedIn = true, m.round
		m.stop()
		m.note = noteStopping
	case len(m.in.text) > 0:
		m.in.set("")
		m.note = ""
	default:
		m.note = "Ctrl-C again leaves"
	}
	return nil
}

// viewKey handles the keys that move and change the view.
func (m *model) viewKey(name string) (tea.Cmd, bool) {
	switch name {
	case "pgup":
		m.scroll(-max(m.page()-2, 1))
	case "pgdown":
		m.scroll(max(m.page()-2, 1))
	case "shift+up", "ctrl+up":
		m.scroll(-1)
	case "shift+down", "ctrl+down":
		m.scroll(1)
	case "ctrl+home":
		m.scroll(-len(m.rows))
	case "ctrl+end":
		m.scroll(len(m.rows))
	case "ctrl+o":
		m.unfolded, m.stale = !m.unfolded, true
	case "ctrl+l":
		return tea.ClearScreen, true
	case "ctrl+z":
		return m.suspend(), true
	case "ctrl+f":
		m.enter(modeFind)
	case "ctrl+r":
		if m.mode == modeTalk {
			m.enter(modeHistory)
		}
	case "shift+tab":
		m.switchMode()
	default:
		return nil, false
	}
	return nil, true
}

// inputKey handles the keys of the input.
func (m *model) inputKey(name, text string) tea.Cmd {
	if name != "tab" {
		m.note = ""
	}
	switch name {
	case "enter":
		return m.enterKey()
	case "esc":
		if m.mode != modeTalk {
			m.leaveMode()
		}
	case "ctrl+d":
		if len(m.in.text) == 0 && m.mode == modeTalk {
			return m.quit()
		}
		m.in.key("delete")
	case "up", "ctrl+p":
		if !m.in.move(-1, m.room()) {
			m.recall(-1)
		}
	case "down", "ctrl+n":
		if !m.in.move(1, m.room()) {
			m.recall(1)
		}
	case "tab":
		return m.complete()
	case "ctrl+g":
		return m.edit()
	case "ctrl+v":
		return m.picture()
	default:
		if !m.in.key(name) && text != "" {
			m.in.insert(text)
		}
	}
	return nil
}

// enterKey sends the input.
func (m *model) enterKey() tea.Cmd {
	text := m.in.String()
	if m.mode != modeTalk {
		return m.decideWith(text)
	}
	if strings.HasSuffix(text, "\\") && m.in.at == len(m.in.text) { // the text continues on the next line
		m.in.replace(1, "\n")
		return nil
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	m.in.set("")
	if m.lone(text) {
		return nil
	}
	m.keep(text)
	switch {
	case !m.busy:
		return m.submit(text)
	case text == "/exit" || text == "/quit":
		return m.quit()
	case slices.Contains(m.c.Anytime, text):
		m.push(blockNote, text)
		return m.do(func() tea.Msg {
			m.c.Backend.Submit(m.ctx, text)
			return nil
		})
	case strings.HasPrefix(text, "/") && !strings.Contains(text, ":"):
		m.in.set(text)
		m.note = "wait for the answer, or stop it with Ctrl-C"
		return nil
	}
	return m.steer(text)
}

// maxHistory bounds the inputs in memory.
const maxHistory = 1000

// keep adds an input to the history, except /login with words after it. One of them may be a key, although the command
// asks for the key afterwards, hidden.
func (m *model) keep(text string) {
	words := strings.Fields(text)
	private := len(words) > 1 && words[0] == "/login"
	if n := len(m.c.History); !private && (n == 0 || m.c.History[n-1] != text) {
		m.c.History = append(m.c.History, text)
		if len(m.c.History) > maxHistory {
			m.c.History = append([]string(nil), m.c.History[len(m.c.History)-maxHistory:]...)
		}
		if m.c.Kept != nil {
			m.c.Kept(text)
		}
	}
	m.past, m.draft = len(m.c.History), ""
}

// recall puts an earlier or later input into the input line.
func (m *model) recall(by int) {
	to := m.past + by
	if m.mode != modeTalk || to < 0 || to > len(m.c.History) {
		return
	}
	if m.past == len(m.c.History) {
		m.draft = m.in.String()
	}
	m.past = to
	if to == len(m.c.History) {
		m.in.set(m.draft)
	} else {
		m.in.set(m.c.History[to])
	}
}

// complete asks the backend for a completion.
func (m *model) complete() tea.Cmd {
	if m.mode != modeTalk {
		return nil
	}
	before := m.in.before()
	return m.do(func() tea.Msg { return completedMsg{before, m.c.Backend.Complete(m.ctx, before)} })
}

// picture asks for the picture in the clipboard.
func (m *model) picture() tea.Cmd {
	if m.mode != modeTalk || m.c.Picture == nil || m.clipping {
		return nil
	}
	m.clipping, m.note = true, "reading the clipboard …"
	return m.do(func() tea.Msg {
		text, err := m.c.Picture(m.ctx)
		return pictureMsg{text, err}
	})
}

// edit opens the input in an editor.
func (m *model) edit() tea.Cmd {
	if m.c.CanEdit != nil {
		if err := m.c.CanEdit(); err != nil {
			m.note = "tenon: " + err.Error()
			return nil
		}
	}
	text := m.in.String()
	var out editedMsg
	m.work.Add(1)
	return m.lend(func() error {
		out.text, out.err = m.c.Backend.Edit(m.ctx, text)
		return nil
	}, func(err error) tea.Msg {
		defer m.work.Done()
		if err != nil {
			return editedMsg{err: err}
		}
		return out
	})
}

// suspend stops the process until it is continued.
func (m *model) suspend() tea.Cmd {
	if m.keys == nil {
		return tea.Suspend
	}
	return m.lend(stopProcess, nil)
}

// enter enters a mode.
func (m *model) enter(to mode) {
	m.draft, m.mode, m.query, m.note = m.in.String(), to, "", ""
	if to == modeHistory {
		m.past = len(m.c.History)
	}
}

// leaveMode returns to the conversation and restores the input.
func (m *model) leaveMode() {
	m.endSecret(secretText{err: ErrNoSecret})
	m.keepForm()
	m.in.set(m.draft)
	m.mode, m.draft, m.query, m.note, m.found, m.form, m.pick = modeTalk, "", "", "", -1, nil, nil
	m.past, m.stale = len(m.c.History), true
}

// historyKey handles a key of the search in earlier inputs.
func (m *model) historyKey(name, text string) {
	from := m.past
	switch name {
	case "esc":
		m.leaveMode()
		return
	case "enter", "tab", "right", "left", "end", "home":
		m.mode, m.query, m.past = modeTalk, "", len(m.c.History)
		return
	case "backspace":
		r := []rune(m.query)
		m.query, from = string(r[:max(len(r)-1, 0)]), len(m.c.History)
	case "ctrl+r":
	default:
		if text == "" {
			return
		}
		m.query, from = m.query+text, min(m.past+1, len(m.c.History))
	}
	for i := from - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(m.c.History[i]), strings.ToLower(m.query)) {
			m.past = i
			m.in.set(m.c.History[i])
			return
		}
	}
	m.note = "no earlier input contains this"
}
