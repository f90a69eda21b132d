package tui

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// A secret is typed into the input without being shown: the screen has a mark for each character, and neither the
// history nor the conversation gets the text. Esc and Ctrl-C cancel the question, and nothing else.

// ErrNoSecret means that the person cancelled the question for a secret.
var ErrNoSecret = errors.New("nothing was entered")

// secretMsg asks for a secret.
type secretMsg struct {
	title string
	got   chan<- secretText // has room for the answer
}

type secretText struct {
	text string
	err  error
}

// Secret asks the person for a text that is not shown. The error is [ErrNoSecret] if the person cancels, or the error
// of the context.
func (p *Program) Secret(ctx context.Context, title string) (string, error) {
	got := make(chan secretText, 1)
	p.tea.Send(secretMsg{title: title, got: got})
	select {
	case s := <-got:
		return s.text, s.err
	case <-ctx.Done():
		return "", ctx.Err()
	case <-p.model.left:
		return "", context.Canceled
	}
}

// askSecret opens the hidden input. The text of the input comes back afterwards.
func (m *model) askSecret(msg secretMsg) {
	if m.mode != modeTalk {
		m.leaveMode()
	}
	m.enter(modeSecret)
	m.in.set("")
	m.secret = &msg
}

// endSecret answers a question for a secret, if there is one.
func (m *model) endSecret(s secretText) {
	if m.secret != nil {
		m.secret.got <- s
		m.secret = nil
	}
}

// secretKey handles a key of the hidden input.
func (m *model) secretKey(name, text string) tea.Cmd {
	m.note = ""
	switch name {
	case "esc":
		m.leaveMode()
	case "enter":
		typed := strings.TrimSpace(m.in.String())
		if typed == "" {
			m.note = "type or paste it, or go back with Esc"
			return nil
		}
		m.endSecret(secretText{text: typed})
		m.leaveMode()
	case "alt+enter", "ctrl+j", "shift+enter": // a secret has one line
	default:
		if !m.in.key(name) && text != "" {
			m.in.insert(text)
		}
	}
	return nil
}

// masked is the input with a mark in place of each character.
func (m *model) masked() *input {
	return &input{text: []rune(strings.Repeat("•", len(m.in.text))), at: m.in.at}
}
