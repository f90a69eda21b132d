package tui

import "time"

// switchMode switches to the next mode of approval. A mode of [Config.Confirm] waits for a second key.
func (m *model) switchMode() {
	if len(m.c.Mode) < 2 || m.c.SetMode == nil {
		return
	}
	next := (m.modeAt + 1) % len(m.c.Mode)
	if words := m.c.Confirm[m.c.Mode[next]]; words != "" {
		m.switching, m.chosenAt = true, m.c.Now()
		m.unchoose()
		m.note = words + "; another key goes back"
		return
	}
	m.setMode(next)
}

func (m *model) setMode(at int) {
	m.modeAt = at
	m.c.SetMode(m.c.Mode[at])
}

// confirmMode handles the key after the one that switches to a mode of [Config.Confirm]: the same key again confirms it
// after a pause, so that neither one key by mistake nor one that is held down switches. It reports whether the key was
// used. Enter does not confirm, because it may be meant for the message in the input.
func (m *model) confirmMode(name string, now time.Time) bool {
	switch {
	case name != "shift+tab":
		m.switching, m.note = false, ""
		return name == "esc"
	case now.Sub(m.chosenAt) < quiet:
		m.chosenAt = now
	default:
		m.switching, m.note = false, ""
		m.setMode((m.modeAt + 1) % len(m.c.Mode))
	}
	return true
}
