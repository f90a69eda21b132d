package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tenonhq/tenon/internal/markdown"
)

// room returns the width of the input's text.
func (m *model) room() int { return max(m.width-2, 2) }

// layout draws the rows of the conversation.
func (m *model) layout() {
	if !m.stale {
		return
	}
	m.stale = false
	m.rows = m.rows[:0]
	width := max(m.width-1, 4)
	var last *block
	for i := 0; i < len(m.blocks); i++ {
		b := m.blocks[i]
		if last != nil && !(last.kind == b.kind && (b.kind == blockCall || b.kind == blockNote)) {
			m.rows = append(m.rows, "")
		}
		last = b
		if n := m.groupAt(i); n >= groupFrom && !m.unfolded {
			m.rows = append(m.rows, group(m.blocks[i:i+n], width)...)
			i += n - 1
			continue
		}
		m.rows = append(m.rows, b.draw(width, m.unfolded)...)
	}
}

// groupAt returns the number of finished calls of one tool that begin with the block i.
func (m *model) groupAt(i int) int {
	n := 0
	for _, b := range m.blocks[i:] {
		if b.kind != blockCall || b.call.State == CallRunning || b.call.Name != m.blocks[i].call.Name ||
			b.call.Depth != m.blocks[i].call.Depth {
			break
		}
		n++
	}
	return n
}

// page returns the number of rows that the conversation has on the screen.
func (m *model) page() int {
	footer, _ := m.footer()
	return max(m.height-len(footer), 0)
}

// scroll moves the view. At the end of the conversation, the view follows new rows again.
func (m *model) scroll(by int) {
	m.layout()
	page := m.page()
	end := max(len(m.rows)-page, 0)
	if m.follow {
		m.top = end
	}
	m.top = min(max(m.top+by, 0), end)
	m.follow = m.top == end
}

// View implements [tea.Model].
func (m *model) View() tea.View {
	var v tea.View
	v.AltScreen, v.ReportFocus, v.MouseMode = true, true, tea.MouseModeCellMotion
	if m.width <= 0 || m.height <= 0 {
		return v
	}
	m.layout()
	footer, cursor := m.footer()
	if over := len(footer) - m.height; over > 0 { // in a tiny terminal the input is most important
		from := min(over, max(cursor.Y-m.height/2, 0))
		footer = footer[from : from+m.height]
		cursor.Y -= from
	}
	page := m.height - len(footer)
	top := m.top
	if end := max(len(m.rows)-page, 0); m.follow || top > end {
		top = end
	}
	lines := make([]string, 0, m.height)
	for i := top; i < len(m.rows) && len(lines) < page; i++ {
		row := m.rows[i]
		if i == m.found {
			row = invert + markdown.Strip(row) + reset
		}
		lines = append(lines, row)
	}
	if len(m.rows) == 0 && page > 2 {
		lines = append(lines, wrapped(m.c.Hint, max(m.width-1, 4), "", "", dim)...)
		lines = lines[:min(len(lines), page)]
	}
	for len(lines) < page {
		lines = append(lines, "")
	}
	cursor.Y += page
	lines = append(lines, footer...)
	for i, l := range lines {
		lines[i] = themed(l, m.theme)
	}
	v.SetContent(strings.Join(lines, "\n"))
	if cursor.Y < m.height {
		v.Cursor = tea.NewCursor(min(cursor.X, m.width-1), cursor.Y)
	}
	return v
}

// footer returns the lines below the conversation, and the position of the cursor in them.
func (m *model) footer() (lines []string, cursor tea.Position) {
	width := max(m.width-1, 4)
	add := func(l string) { lines = append(lines, l) }
	if !m.follow {
		add("") // replaced below, when the height of the footer is known
	} else {
		add("")
	}
	if m.busy && m.asked == "" {
		add(m.working(width))
	}
	for _, text := range append(append([]string(nil), m.steered...), m.queue...) {
		add(dim + shorten("» queued: "+safeLine(text), width) + reset)
	}
	if m.asked != "" && len(m.asks) > 0 {
		lines = append(lines, m.panel(width)...)
	}
	if m.mode == modePick {
		lines = append(lines, m.pick.show(width, max(m.height-len(lines)-4, 2))...)
	}
	s := m.in.show(m.room())
	if label := m.label(); label != "" {
		add(yellow + shorten(label, width) + reset)
	}
	most := max(m.height/3, 1)
	from := min(max(s.row-most+1, 0), max(len(s.lines)-most, 0))
	for i := from; i < min(from+most, len(s.lines)); i++ {
		lead := "  "
		if i == 0 {
			lead = bold + "> " + reset
		}
		if i == s.row {
			cursor = tea.Position{X: 2 + s.col, Y: len(lines)}
		}
		add(lead + s.lines[i])
	}
	if m.note != "" {
		notes := wrapped(m.note, width, "", "", dim)
		lines = append(lines, notes[:min(len(notes), max(m.height/3, 1))]...)
	}
	add(m.statusLine(width))
	if !m.follow {
		below := max(len(m.rows)-m.top-max(m.height-len(lines), 0), 0)
		words := "lines"
		switch below {
		case 0:
			return lines, cursor
		case 1:
			words = "line"
		}
		lines[0] = dim + shorten(fmt.Sprintf("── %d %s below · Ctrl-End follows ──", below, words), width) + reset
	}
	return lines, cursor
}

// label returns the label of the input in the current mode. It returns "" if the input is a message.
func (m *model) label() string {
	switch m.mode {
	case modeReason:
		return "the reason:"
	case modeEdit:
		return "the arguments:"
	case modeForm:
		return m.form.label()
	case modeIf:
		return "the condition:"
	case modeHistory:
		return "search earlier inputs: " + safeLine(m.query)
	case modeFind:
		return "search the conversation (Enter: up, Down: down): " + safeLine(m.query)
	case modePick:
		return m.pick.label()
	}
	return ""
}

// spinner contains the frames of the spinner.
var spinner = [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// them returns the pronoun for a number of things.
func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// working returns the line that is shown while a run is in progress.
func (m *model) working(width int) string {
	parts := []string{fmt.Sprintf("%d s", int(m.c.Now().Sub(m.began)/time.Second))}
	if m.letters > 0 {
		parts = append(parts, "about "+plural((m.letters+3)/4, "token"))
	}
	what := "working"
	switch {
	case m.stopped:
		what = "stopping"
	case m.current != nil && m.current.kind == blockThinking:
		what = "thinking"
	}
	if !m.stopped {
		parts = append(parts, "Ctrl-C stops")
	}
	return cyan + spinner[m.spin%len(spinner)] + reset + dim +
		shorten(" "+what+" "+strings.Join(parts, " · "), width-1) + reset
}

// panel draws the first pending question.
func (m *model) panel(width int) (lines []string) {
	a := m.asks[0]
	head := a.Head
	if n := len(m.asks); n > 1 {
		head += fmt.Sprintf(" (1 of %d)", n)
	}
	lines = append(lines, yellow+bold+shorten("▌ "+safeLine(head), width)+reset)
	bar := yellow + "▌ " + reset
	for _, f := range a.Fields {
		name := fmt.Sprintf("%-10s ", f[0])
		lines = append(lines, wrapped(f[1], width, bar+dim+name+reset, bar+strings.Repeat(" ", 11), "")...)
	}
	var args []string
	for _, l := range a.Args {
		args = append(args, wrapped(l, width, bar, bar, "")...)
	}
	room := max(m.height-len(lines)-8, 1)
	if m.mode == modeForm {
		args = m.form.show(width-2, room, bar)
	}
	if m.hidden = max(len(args)-room, 0); m.hidden > 0 && m.mode == modeTalk {
		more := "… " + plural(m.hidden, "more line") + "; y shows " + them(m.hidden) + " first"
		args = append(args[:room:room], bar+dim+shorten(more, width-2)+reset)
	}
	lines = append(lines, args...)
	keys := a.keysOf()
	switch {
	case m.deciding:
		keys = "…"
	case m.mode == modeReason:
		keys = "write a reason, or nothing; Enter denies, Esc goes back"
	case m.mode == modeForm:
		keys = "Tab and Up go to other fields, Enter sends, Ctrl-X edits the JSON, Esc goes back"
	case m.mode == modeEdit:
		keys = "Enter sends these arguments, Alt-Enter adds a line, Esc goes back"
	case m.mode == modeIf:
		keys = "Enter allows calls that fulfil this always, Esc goes back"
	case len(m.in.text) > 0:
		keys = "send or clear your text to answer: " + keys
	}
	return append(lines, wrapped(keys, width, bar, bar, bold)...)
}

// statusLine returns the last line of the screen.
func (m *model) statusLine(width int) string {
	var parts []string
	if len(m.asks) > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", len(m.asks)))
	}
	if len(m.status.Down) > 0 {
		parts = append(parts, "down: "+strings.Join(m.status.Down, ", "))
	}
	if m.modeAt > 0 && m.modeAt < len(m.c.Mode) {
		parts = append(parts, m.c.Mode[m.modeAt])
	}
	parts = append(parts, m.status.Parts...)
	line := ""
	for _, p := range parts {
		p = safeLine(p)
		if line != "" {
			p = " · " + p
		}
		if markdown.Width(line)+markdown.Width(p) <= width {
			line += p
		}
	}
	return dim + line + reset
}

// findKey handles a key of the search in the conversation.
func (m *model) findKey(name, text string) {
	from := m.found
	switch name {
	case "esc":
		m.leaveMode()
		return
	case "enter", "up", "ctrl+f":
		from--
	case "down":
		m.find(max(m.found+1, 0), 1)
		return
	case "backspace":
		r := []rune(m.query)
		m.query, from = string(r[:max(len(r)-1, 0)]), len(m.rows)-1
	default:
		if text == "" {
			return
		}
		m.query += text
		if from < 0 {
			from = len(m.rows) - 1
		}
	}
	if m.found < 0 && from < 0 {
		from = len(m.rows) - 1
	}
	m.find(from, -1)
}

// find moves to the next row that contains the query. At one end of the conversation, it continues at the other.
func (m *model) find(from, by int) {
	m.layout()
	m.note = ""
	query, n := strings.ToLower(m.query), len(m.rows)
	for tried := range n {
		i := ((from+tried*by)%n + n) % n
		if query == "" || !strings.Contains(strings.ToLower(markdown.Strip(m.rows[i])), query) {
			continue
		}
		if at := from + tried*by; at < 0 || at >= n {
			m.note = "the search continues at the other end"
		}
		m.found = i
		page := m.page()
		m.top = min(max(i-page/2, 0), max(n-page, 0))
		m.follow = false
		return
	}
	m.note = "no line contains this"
}
