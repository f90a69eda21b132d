package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/tenonhq/tenon/internal/markdown"
)

// picker is a list of values from which the person chooses one with the keys. Typed text selects the values that
// contain it.
type picker struct {
	Choices
	query string
	at    int // index into fitting
}

// offer opens a picker. In another mode, or without values, it only lists them.
func (m *model) offer(c Choices) {
	if m.mode != modeTalk || len(c.Items) == 0 {
		lines := []string{c.Title}
		for _, i := range c.Items {
			lines = append(lines, i.line())
		}
		m.remark(strings.Join(lines, "\n"))
		return
	}
	m.enter(modePick)
	m.in.set("")
	m.pick = &picker{Choices: c}
	for n, i := range c.Items {
		if i.Now {
			m.pick.at = n
		}
	}
}

func (c Choice) line() string {
	return strings.TrimRight(safeLine(c.Value)+"  "+safeLine(c.About), " ")
}

// fitting returns the values that contain the typed text.
func (p *picker) fitting() (list []Choice) {
	query := strings.ToLower(p.query)
	for _, c := range p.Items {
		if strings.Contains(strings.ToLower(c.Value+" "+c.About), query) {
			list = append(list, c)
		}
	}
	return list
}

// pickKey handles a key of a picker.
func (m *model) pickKey(name, text string) tea.Cmd {
	p := m.pick
	list := p.fitting()
	m.note = ""
	switch name {
	case "esc":
		m.leaveMode()
	case "up", "ctrl+p", "shift+tab":
		p.at--
	case "down", "ctrl+n", "tab":
		p.at++
	case "pgup":
		p.at = max(p.at-pickRows, 0)
	case "pgdown":
		p.at = min(p.at+pickRows, len(list)-1)
	case "home":
		p.at = 0
	case "end":
		p.at = len(list) - 1
	case "backspace":
		r := []rune(p.query)
		p.query, p.at = string(r[:max(len(r)-1, 0)]), 0
	case "enter":
		if len(list) == 0 {
			m.note = "nothing contains this text; Esc goes back"
			break
		}
		m.leaveMode()
		m.queue = append(m.queue, p.Command+" "+list[p.at].Value)
		if !m.busy { // otherwise the command that offered the values has not ended
			return m.next()
		}
		return nil
	default:
		if text != "" {
			p.query, p.at = p.query+text, 0
		}
	}
	if n := len(p.fitting()); n > 0 {
		p.at = (p.at + n) % n
	} else {
		p.at = 0
	}
	return nil
}

// pickRows is the largest number of values that a picker shows at once.
const pickRows = 10

// show draws the values around the selected one.
func (p *picker) show(width, room int) (lines []string) {
	list := p.fitting()
	rows := max(min(pickRows, room-1), 1)
	from := min(max(p.at-rows/2, 0), max(len(list)-rows, 0))
	widest := 0
	for _, c := range list {
		widest = max(widest, markdown.Width(safeLine(c.Value)))
	}
	widest = min(widest, width/2)
	for i := from; i < min(from+rows, len(list)); i++ {
		value := shorten(safeLine(list[i].Value), max(widest, 1))
		about := safeLine(list[i].About)
		if list[i].Now {
			about = strings.TrimSpace("(now) " + about)
		}
		text := value + strings.Repeat(" ", max(widest-markdown.Width(value), 0)) + "  " + about
		text = strings.TrimRight(shorten(text, max(width-2, 1)), " ")
		if i == p.at {
			lines = append(lines, cyan+"▸ "+reset+bold+text+reset)
		} else {
			lines = append(lines, "  "+text)
		}
	}
	keys := "Up and Down select, typing searches, Enter chooses, Esc goes back"
	if hidden := len(list) - len(lines); hidden > 0 {
		keys = fmt.Sprintf("%d more; %s", hidden, keys)
	}
	return append(lines, dim+shorten(keys, width)+reset)
}

// label is the line above the typed text.
func (p *picker) label() string {
	if p.query == "" {
		return safeLine(p.Title)
	}
	return safeLine(p.Title + ": " + p.query)
}
