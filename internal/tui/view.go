package tui

import (
	"fmt"
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
	first := -1
	for i := 0; i < len(m.blocks); i++ {
		b := m.blocks[i]
		if last != nil && !(last.kind == b.kind && (b.kind == blockCall || b.kind == blockNote)) {
			m.rows = append(m.rows, "")
		}
		last = b
		if b == m.shows {
			first = len(m.rows)
		}
		if n := m.groupAt(i); n >= groupFrom && !m.unfolded {
			m.rows = append(m.rows, m.look.all(group(m.blocks[i:i+n], width))...)
			i += n - 1
			continue
		}
		m.rows = append(m.rows, b.draw(width, m.unfolded, m.look)...)
	}
	m.shows = nil
	if first >= 0 && first < len(m.rows)-m.page() {
		m.top, m.follow = first, false
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

// slow is a time for the handling of a message in which a person may have typed several keys.
const slow = 100 * time.Millisecond

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
		lines = append(lines, m.look.all(wrapped(m.c.Hint, max(m.width-1, 4), "", "", dim))...)
		lines = lines[:min(len(lines), page)]
	}
	for len(lines) < page {
		lines = append(lines, "")
	}
	cursor.Y += page
	lines = append(lines, m.look.all(footer)...)
	v.SetContent(strings.Join(lines, "\n"))
	if cursor.Y < m.height {
		v.Cursor = tea.NewCursor(min(cursor.X, m.width-1), cursor.Y)
	}
	if now := m.c.Now(); m.asked != "" && now.Sub(m.handled) > slow {
		m.shownAt = now // keys may have been typed before the person could see this screen
		m.unchoose()
	}
	return v
}

// footer returns the lines below the conversation, and the position of the cursor in them.
func (m *model) footer() (lines []string, cursor tea.Position) {
	width := max(m.width-1, 4)
	add := func(l string) { lines = append(lines, l) }
	asks := m.asked != "" && len(m.asks) > 0
	tight := asks && (m.height < tightHeight || width < narrowWidth)
	foot, cursor := m.foot(width, tight)
	if !tight {
		add("") // replaced below if the view does not follow, when the height of the footer is known
		if m.busy && m.asked == "" {
			add(m.working(width))
		}
		lines = append(lines, m.queued(width)...)
	}
	if asks {
		lines = append(lines, m.panel(width, m.height-len(lines)-len(foot), tight)...)
	}
	if m.mode == modePick {
		lines = append(lines, m.pick.show(width, max(m.height-len(lines)-4, 2))...)
	}
	cursor.Y += len(lines)
	lines = append(lines, foot...)
	if len(lines) > m.height {
		m.sight.rows = 0 // View leaves out lines, perhaps of the question
	}
	if m.follow || tight {
		return lines, cursor
	}
	below := max(len(m.rows)-m.top-max(m.height-len(lines), 0), 0)
	words := "lines"
	switch below {
	case 0:
		return lines, cursor
	case 1:
		words = "line"
	}
	lines[0] = dim + shorten(fmt.Sprintf("── %d %s below · Ctrl-End follows ──", below, words), width) + reset
	return lines, cursor
}

// queued draws the messages that wait.
func (m *model) queued(width int) (lines []string) {
	list := append(append([]string(nil), m.steered...), m.queue...)
	most := max(m.height/4, 1)
	for i, text := range list {
		if left := len(list) - i; i == most-1 && left > 1 {
			return append(lines, dim+shorten(fmt.Sprintf("» %d messages queued", left), width)+reset)
		}
		lines = append(lines, dim+shorten("» queued: "+safeLine(text), width)+reset)
	}
	return lines
}

// foot draws the input with its label and note, and the status line. If tight is set, it draws the input and the line
// that is needed most.
func (m *model) foot(width int, tight bool) (lines []string, cursor tea.Position) {
	if label := m.label(); label != "" && (!tight || m.note == "") {
		labels := wrapped(label, width, "", "", yellow)
		most := min(max(m.height/6, 1), labelRows)
		if tight {
			most = 1
		}
		if len(labels) > most {
			labels = append(labels[:most-1:most-1], markdown.Cut(labels[most-1], max(width-1, 1))+"…"+reset)
		}
		lines = append(lines, labels...)
	}
	in := &m.in
	if m.mode == modeSecret {
		in = m.masked()
	}
	s := in.show(m.room())
	most := max(m.height/3, 1)
	from := min(max(s.row-most+1, 0), max(len(s.starts)-most, 0))
	for i := from; i < min(from+most, len(s.starts)); i++ {
		lead := "  "
		if i == 0 {
			lead = bold + "> " + reset
		}
		if i == s.row {
			cursor = tea.Position{X: 2 + s.col, Y: len(lines)}
		}
		line := s.line(i)
		if m.mode == modeForm && m.form.offered && line != "" {
			lead += invert // as selected: a character replaces it
		}
		lines = append(lines, lead+line+reset)
	}
	lines = append(lines, m.commands(width, tight)...)
	if m.note != "" {
		notes := wrapped(m.note, width, "", "", dim)
		lines = append(lines, notes[:min(len(notes), max(m.height/3, 1))]...)
	}
	if !tight {
		lines = append(lines, m.statusLine(width))
	}
	return lines, cursor
}

// commands draws the commands that begin with the typed text, with what they do.
func (m *model) commands(width int, tight bool) (lines []string) {
	text := m.in.String()
	if m.mode != modeTalk || m.note != "" || tight || !strings.HasPrefix(text, "/") {
		return nil
	}
	widest := 0
	var list [][2]string
	for _, c := range m.c.Commands {
		if strings.HasPrefix(c[0], text) {
			list = append(list, c)
			widest = max(widest, markdown.Width(c[0]))
		}
	}
	rows := max(m.height/3, 1)
	for i, c := range list {
		if i == rows-1 && len(list) > rows {
			more := fmt.Sprintf("… %d more; type on, or Tab completes", len(list)-i)
			return append(lines, dim+shorten(more, width)+reset)
		}
		pad := strings.Repeat(" ", widest-markdown.Width(c[0]))
		lines = append(lines, shorten(c[0]+pad+"  "+c[1], width))
	}
	return lines
}

// labelRows is the largest number of lines for the label of the input.
const labelRows = 3

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
	case modeSecret:
		return safeLine(m.secret.title) + " (hidden; Enter keeps it, Esc and Ctrl-C go back)"
	}
	return ""
}

// spinner contains the frames of the spinner.
var spinner = [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// working returns the line that is shown while a run is in progress.
func (m *model) working(width int) string {
	parts := []string{fmt.Sprintf("%d s", int(m.c.Now().Sub(m.began)/time.Second))}
	if m.letters > 0 {
		parts = append(parts, "about "+countOf((m.letters+3)/4, "token"))
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
