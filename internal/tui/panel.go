package tui

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon/internal/markdown"
)

// The sizes at which a question is drawn differently.
const (
	tightHeight = 10 // below this height, or narrowWidth, only the question and the input are drawn
	leastWidth  = 10 // below this width a question cannot be read, and nothing can be allowed
	narrowWidth = 30 // below this width names and values share their lines
	asideRows   = 8  // rows that a long question leaves for the rest of the screen
	leastRows   = 6  // rows that a long question may take in any case
)

// sight records which lines of a question the person has seen. Nothing is allowed before all of its lines were on the
// screen, however small the terminal is.
type sight struct {
	id    string // of the question
	width int    // the lines were wrapped to this width
	total int    // number of lines
	from  int    // first line on the screen
	rows  int    // number of lines on the screen
	seen  int    // number of lines, from the first on, that were on the screen when a key was pressed
	whole bool   // all lines were seen, at one width
}

// fit returns the lines that fit into rows. Lines that were seen at another width do not count.
func (s *sight) fit(id string, width int, lines []string, rows int) []string {
	if s.id != id {
		*s = sight{id: id}
	}
	if s.width != width {
		s.width, s.from, s.seen = width, 0, 0
	}
	s.total, s.rows = len(lines), max(min(rows, len(lines)), 0)
	s.from = min(max(s.from, 0), s.total-s.rows)
	return lines[s.from : s.from+s.rows]
}

// look records that the person has seen the lines on the screen.
func (s *sight) look() {
	if s.from <= s.seen {
		s.seen = max(s.seen, s.from+s.rows)
	}
	s.whole = s.whole || s.seen >= s.total
}

// sees reports whether the person has seen the whole question. If not, it shows more of it.
func (m *model) sees() bool {
	m.footer() // lays the question out as it is on the screen
	m.sight.look()
	if m.sight.whole {
		return true
	}
	if m.sight.rows == 0 { // perhaps a note takes its place
		m.note = ""
		m.footer()
		if m.sight.rows == 0 {
			m.note = noteSmall
		}
	} else {
		m.sight.from = m.sight.seen
	}
	m.shownAt = m.c.Now() // a key that is held down must not answer
	return false
}

// noteSmall is shown if the terminal has no room for a question.
const noteSmall = "too small: enlarge the window to answer"

// scrollAsk handles the keys that scroll a question that does not fit. It reports whether the key was used.
func (m *model) scrollAsk(name string) bool {
	by := map[string]int{"down": 1, "up": -1, "pgdown": max(m.sight.rows, 1), "pgup": -max(m.sight.rows, 1)}[name]
	if by == 0 {
		return false
	}
	m.footer()
	if m.sight.rows == 0 || m.sight.total <= m.sight.rows {
		return false
	}
	if m.c.Now().Sub(m.shownAt) >= quiet {
		m.sight.look()
	}
	m.sight.from += by
	return true
}

// panel draws the first pending question in at most room lines. If tight is set, it draws no more than the question and
// the keys.
func (m *model) panel(width, room int, tight bool) (lines []string) {
	a := m.asks[0]
	bar, head := yellow+"▌ "+reset, a.Head
	if q := m.request(); q != nil && q.Head != "" {
		head = q.Head
	}
	if n := len(m.asks); n > 1 {
		head += fmt.Sprintf(" (%d of %d; Tab shows the next)", m.place, n)
	} else if n := len(a.Requests); n > 1 {
		head += fmt.Sprintf(" (%d of %d)", m.step+1, n)
	}
	var body []string
	if tight {
		body = wrapped(safeLine(head), width, bar, bar, yellow+bold)
	} else {
		lines = append(lines, yellow+bold+shorten("▌ "+safeLine(head), width)+reset)
	}
	body = append(body, m.question(width, bar)...)
	keys := m.keyLines(width, bar, tight)
	room -= len(lines) + len(keys)
	if m.mode == modeForm {
		return append(append(lines, m.formLines(width, room, bar)...), keys...)
	}
	if !tight {
		room = min(room, max(m.height-asideRows, leastRows))
	}
	id := fmt.Sprintf("%s#%d", a.ID, m.step)
	if width < leastWidth-1 || tight && room < 1 && len(keys) > 0 {
		m.sight.fit(id, width, body, 0)
		return []string{yellow + shorten(noteSmall, width) + reset}
	}
	rest := len(body) > room && room > 1 && !tight
	if rest {
		room--
	}
	lines = append(lines, m.sight.fit(id, width, body, room)...)
	if rest {
		lines = append(lines, bar+dim+shorten(m.sight.rest(), width-2)+reset)
	}
	if tight && len(keys) > 0 {
		keys = []string{bold + m.tightKeys(width) + reset}
	}
	return append(lines, keys...)
}

// formLines draws the form of the first pending question, and above it as much of the question's fields as fits.
func (m *model) formLines(width, room int, bar string) (lines []string) {
	for _, f := range m.asks[0].Fields {
		lines = append(lines, fieldLines(f, width, bar)...)
	}
	fields := min(len(m.form.fields), max(room/2, 3))
	lines = lines[:min(len(lines), max(room-fields, 0))]
	return append(lines, m.form.show(width-2, max(room-len(lines), 1), bar)...)
}

// rest describes the lines that are not on the screen.
func (s *sight) rest() string {
	if below := s.total - s.from - s.rows; below > 0 {
		return fmt.Sprintf("… %s; Down or PgDn shows them", countOf(below, "more line"))
	}
	return fmt.Sprintf("%s above; Up shows them", countOf(s.from, "line"))
}

// tightKeys is the line of keys in a small terminal, with the position in a question that does not fit.
func (m *model) tightKeys(width int) string {
	s := &m.sight
	place, mark := "", ""
	if s.total > s.rows {
		mark = "↑ "
		if s.from+s.rows < s.total {
			mark = "↓ "
		}
		place = fmt.Sprintf("%s%d/%d  ", mark, s.from+s.rows, s.total)
	}
	if m.deciding {
		return "…"
	}
	if m.choice != "" {
		return shorten(choiceWords, width)
	}
	if m.lasting != "" {
		return shorten(lastings[strings.ToLower(m.lasting)].words, width)
	}
	switch m.wait() {
	case "":
	case waitMoment:
		return shorten(place+"…", width)
	default:
		return shorten(place+"clear your text to answer", width)
	}
	var letters []string
	for _, x := range m.asks[0].answers(m.request()) {
		letters = append(letters, x.key)
	}
	for _, text := range []string{place + strings.Join(letters, " "), mark + strings.Join(letters, " ")} {
		if markdown.Width(text) <= width {
			return text
		}
	}
	return shorten(mark+strings.Join(letters, ""), width)
}

// countOf returns a number with a noun.
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// question draws the first pending question, without its head.
func (m *model) question(width int, bar string) (lines []string) {
	a, q := m.asks[0], m.request()
	fields := a.Fields
	if q != nil {
		fields = append(fields[:len(fields):len(fields)], q.Fields...)
	}
	for i, f := range fields {
		if q != nil && i == len(a.Fields) {
			lines = append(lines, q.texts(width, bar)...)
		}
		lines = append(lines, fieldLines(f, width, bar)...)
	}
	if q != nil {
		if len(q.Fields) == 0 {
			lines = append(lines, q.texts(width, bar)...)
		}
		if q.Warn != "" {
			lines = append(lines, wrapped(q.Warn, width, bar+yellow+"! "+reset, bar+"  ", "")...)
		}
	}
	for _, l := range a.Args {
		lines = append(lines, wrapped(l, width, bar, bar, "")...)
	}
	return lines
}

// fieldLines draws a name with its value.
func fieldLines(f [2]string, width int, bar string) []string {
	if width < narrowWidth {
		name := f[0]
		if name != "" {
			name += ": "
		}
		return wrapped(name+f[1], width, bar, bar, "")
	}
	return wrapped(f[1], width, bar+dim+fmt.Sprintf("%-10s ", f[0])+reset, bar+strings.Repeat(" ", 11), "")
}

// texts draws the texts of a server. A mark at each line distinguishes them from texts of tenon.
func (q *Request) texts(width int, bar string) (lines []string) {
	lead := bar + dim + "| " + reset
	for _, l := range q.Text {
		lines = append(lines, wrapped(l, width, lead, lead, "")...)
	}
	return lines
}

// keyLines draws the keys that answer the first pending question.
func (m *model) keyLines(width int, bar string, tight bool) []string {
	var words []string
	for _, x := range m.asks[0].answers(m.request()) {
		words = append(words, x.words)
	}
	keys, style := strings.Join(words, "  "), bold
	switch {
	case tight && (m.mode != modeTalk || m.note != ""):
		return nil // the label of the input, or the note, has this line
	case tight:
		return []string{""} // see tightKeys
	case m.deciding:
		keys = "…"
	case m.mode == modeReason:
		keys = "write a reason, or nothing; Enter denies, Esc goes back"
	case m.mode == modeForm && m.request() != nil:
		keys = "Tab and Up go to other fields, Enter to the next one; at the last one it sends. Esc goes back"
	case m.mode == modeForm:
		keys = "Tab and Up go to other fields, Enter to the next one; at the last one it sends. Ctrl-X edits the " +
			"JSON, Esc goes back"
	case m.mode == modeEdit:
		keys = "Enter sends these arguments, Alt-Enter adds a line, Esc goes back"
	case m.mode == modeIf:
		keys = "Enter allows calls that fulfil this always, Esc goes back"
	case m.choice != "":
		keys = choiceWords
	case m.lasting != "":
		keys = lastings[strings.ToLower(m.lasting)].words + "; another key goes back"
	case m.mode == modeTalk && m.wait() != "":
		keys, style = m.wait()+": "+keys, dim
	}
	return wrapped(keys, width, bar, bar, style)
}
