package tui

import (
	"context"
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// A message that is written during an answer goes to the run at once (steered), because the run sends it with its next
// request to the model. A run that ends takes no more messages, and the message becomes the next question (queue). When
// the person stops the answer, the messages that the model has not received return to the input:
//
//	steered ── Withdrawn, or ErrLate ──┐
//	queue ─────────────────────────────┴─► back ── end of the work ──► input

// steer sends a message to the run in progress.
func (m *model) steer(text string) tea.Cmd {
	m.steered = append(m.steered, text)
	round := m.round
	return m.do(func() tea.Msg { return steerMsg{text, round, m.c.Backend.Steer(m.ctx, text)} })
}

// steerResult handles the end of [Backend.Steer].
func (m *model) steerResult(msg steerMsg) tea.Cmd {
	if msg.err == nil {
		return nil // the message stays in the list until the run reports it
	}
	m.steered = without(m.steered, msg.text)
	switch {
	case !errors.Is(msg.err, ErrLate):
		m.remark("tenon: the message was not sent: " + msg.err.Error())
	case m.stoppedIn > 0 && msg.round == m.stoppedIn:
		m.back = append(m.back, msg.text)
		if !m.stopped { // the end of the work was handled before
			m.giveBack()
		}
	default:
		m.queue = append(m.queue, msg.text)
		if !m.busy {
			return m.next()
		}
	}
	return nil
}

// withdrawn handles the report that a stopped run did not take a message.
func (m *model) withdrawn(text string) {
	m.steered = without(m.steered, text)
	m.back = append(m.back, text)
	if !m.busy {
		m.giveBack()
	}
}

// giveBack puts the messages that return in front of the text of the input. A mode that has replaced the input restores
// it later.
func (m *model) giveBack() {
	if len(m.back) == 0 {
		return
	}
	text := strings.Join(m.back, "\n")
	m.returned, m.back = append(m.returned, m.back...), nil
	into := m.in.String
	if m.mode != modeTalk {
		into = func() string { return m.draft }
	}
	if rest := into(); rest != "" {
		text += "\n" + rest
	}
	if m.mode != modeTalk {
		m.draft = text
		return
	}
	m.in.set(text)
	m.past = len(m.c.History)
}

// Unsent returns the messages that were sent during an answer and did not reach the model: messages that wait for the
// end of a run, and messages that returned to the input and are still in it. It may be called after Run.
func (p *Program) Unsent() []string {
	m := p.model
	text := m.in.String()
	if m.mode != modeTalk {
		text = m.draft
	}
	kept := slices.DeleteFunc(slices.Clone(m.returned), func(s string) bool { return !strings.Contains(text, s) })
	return slices.Concat(kept, m.back, m.queue)
}

// Left reports whether the person has left. The program shows no more messages then.
func (p *Program) Left() bool { return p.model.ctx.Err() != nil }

// begin begins work of the backend that the person can stop.
func (m *model) begin(f func(context.Context)) tea.Cmd {
	ctx, stop := context.WithCancel(m.ctx)
	m.stop, m.busy, m.began, m.follow, m.letters = stop, true, m.c.Now(), true, 0
	m.round++
	m.returned = nil
	work := m.do(func() tea.Msg {
		f(ctx)
		return idleMsg{}
	})
	return tea.Batch(work, spin())
}
