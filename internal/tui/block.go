package tui

import (
	"fmt"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/markdown"
)

// blockKind is the kind of a block.
type blockKind int

const (
	blockPerson blockKind = iota
	blockAnswer
	blockThinking
	blockCall
	blockNote
)

// block is a part of the conversation. It caches its lines until its text or the width changes.
type block struct {
	kind blockKind
	text strings.Builder
	call Call
	open bool // more text may follow

	width    int
	look     *look
	unfolded bool // whether the lines were drawn unfolded
	lines    []string
	fresh    bool // the lines show the current text
	stable   int  // bytes of the text that the settled lines show
	settled  []string
}

// The SGR sequences that the program writes. Colours are selected from the terminal's own colours.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	invert = "\x1b[7m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

// safe returns a text in which all characters are safe to write to the terminal.
func safe(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    ")
	return tenon.Visible(strings.ReplaceAll(s, "\r", "\n"))
}

// safeLine is safe for a text on one line.
func safeLine(s string) string { return strings.ReplaceAll(safe(s), "\n", " ") }

// maxBlock bounds the text of one block, in bytes. The journal contains the whole text.
const maxBlock = 4 << 20

// add appends a piece of text.
func (b *block) add(text string) {
	if room := maxBlock - b.text.Len(); len(text) > room {
		text = text[:max(room, 0)]
	}
	b.text.WriteString(text)
	b.fresh = false
}

// draw returns the lines of a block.
func (b *block) draw(width int, unfolded bool, look *look) []string {
	if b.fresh && b.width == width && b.unfolded == unfolded && b.look == look {
		return b.lines
	}
	if b.width != width || b.look != look {
		b.stable, b.settled = 0, nil
	}
	b.width, b.unfolded, b.look, b.fresh = width, unfolded, look, true
	switch b.kind {
	case blockPerson:
		b.lines = wrapped(b.text.String(), width, cyan+bold+"> "+reset, "  ", bold)
	case blockAnswer:
		b.lines = b.answer(width)
		return b.lines
	case blockThinking:
		b.lines = b.thinking(width, unfolded)
	case blockCall:
		b.lines = b.call.draw(width, unfolded)
	default:
		b.lines = wrapped(b.text.String(), width, "", "", dim)
	}
	b.lines = look.all(b.lines)
	return b.lines
}

// answer draws Markdown. It draws the stable part of the text only once.
func (b *block) answer(width int) []string {
	text := b.text.String()
	o := markdown.Options{Width: width, Links: true}
	for n := markdown.Stable(text[b.stable:]); n > 0; n = markdown.Stable(text[b.stable:]) {
		if len(b.settled) > 0 && text[b.stable-1] == '\n' {
			b.settled = append(b.settled, "")
		}
		b.settled = append(b.settled, b.look.all(trimmed(markdown.Render(text[b.stable:b.stable+n], o)))...)
		b.stable += n
	}
	rest := b.look.all(trimmed(markdown.Render(text[b.stable:], o)))
	if len(b.settled) == 0 {
		return rest
	}
	lines := b.settled[:len(b.settled):len(b.settled)]
	if len(rest) > 0 {
		lines = append(append(lines, ""), rest...)
	}
	return lines
}

// trimmed removes empty lines at the end of a list of lines.
func trimmed(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// thinking draws reasoning. It draws one line, or all lines if unfolded is set.
func (b *block) thinking(width int, unfolded bool) []string {
	text := strings.TrimSpace(b.text.String())
	if !unfolded {
		words := "thought"
		if b.open {
			words = "thinking"
		}
		last := text[strings.LastIndexByte(text, '\n')+1:]
		return []string{dim + shorten(words+": "+safeLine(last), width) + reset}
	}
	return wrapped(text, width, "", "", dim)
}

// wrapped draws plain text in one style. It breaks lines at words. first precedes the first line, and rest all others.
func wrapped(text string, width int, first, rest, style string) []string {
	var lines []string
	room := max(width-markdown.Width(rest), 4)
	for l := range strings.SplitSeq(strings.TrimRight(safe(text), "\n"), "\n") {
		indent, others := hanging(l, room)
		for i, part := range breakLine(l[indent:], room-others) {
			lead := rest
			if len(lines) == 0 {
				lead = first
			}
			before := l[:indent]
			if i > 0 {
				before = strings.Repeat(" ", others)
			}
			lines = append(lines, lead+style+before+part+reset)
		}
	}
	return lines
}

// hanging returns the indentation of a line, and the indentation of its continuation lines when the line is wrapped.
// The continuation of a list item begins below its text, after the mark of the item.
func hanging(l string, room int) (first, others int) {
	text := strings.TrimLeft(l, " ")
	first = len(l) - len(text)
	others = first
	if strings.HasPrefix(text, "• ") || strings.HasPrefix(text, "- ") {
		others += 2
	}
	if others > room/2 {
		return 0, 0
	}
	return first, others
}

// breakLine splits a line at blanks. It splits a word only if the word is longer than the width.
func breakLine(l string, width int) (parts []string) {
	for {
		head := markdown.Cut(l, width)
		if len(head) == len(l) {
			return append(parts, l)
		}
		if i := strings.LastIndexByte(head, ' '); i > 0 && len(head) < len(l) && l[len(head)] != ' ' {
			head = head[:i]
		}
		parts = append(parts, strings.TrimRight(head, " "))
		l = strings.TrimLeft(l[len(head):], " ")
	}
}

// shorten cuts a line to a width.
func shorten(s string, width int) string {
	if len(markdown.Cut(s, width)) == len(s) {
		return s
	}
	return markdown.Cut(s, max(width-1, 1)) + "…"
}

// noteLines is the maximum number of lines below a call for a note that does not fit on the line of the call.
const noteLines = 4

// draw draws a call on one line. If its note is too long for this line, the note follows below. If unfolded is set, the
// details follow, too.
func (c Call) draw(width int, unfolded bool) []string {
	mark := map[CallState]string{CallRunning: dim + "○", CallDone: green + "●", CallWarned: yellow + "●",
		CallFailed: red + "●"}[c.State] + reset
	indent := strings.Repeat("  ", min(c.Depth, 8))
	name, note := safeLine(c.Name), safeLine(c.Note)
	room := max(width-len(indent)-2, 8)
	tail := ""
	if c.Took != "" {
		tail = " " + c.Took
	}
	below, most := "", max(room*2/3, room-markdown.Width(name)-20)
	switch {
	case note == "":
	case c.State != CallRunning && markdown.Width(tail+" "+note) > most:
		below = note // the note is a reason, so it is shown in full
	default:
		tail = shorten(tail+" "+note, most)
	}
	name = shorten(name, max(room-markdown.Width(tail), 8))
	args := ""
	if left := room - markdown.Width(name) - markdown.Width(tail) - 1; left >= 8 && c.Args != "" {
		args = " " + shorten(safeLine(c.Args), left)
	}
	style := dim
	if c.State == CallFailed {
		style = red
	}
	lines := []string{indent + mark + " " + name + dim + args + reset + style + tail + reset}
	if below != "" {
		lead := indent + "  "
		notes := wrapped(below, width, lead, lead, style)
		if n := len(notes); n > noteLines && !unfolded {
			last := strings.TrimSuffix(notes[noteLines-1], reset)
			notes = append(notes[:noteLines-1:noteLines-1], shorten(last, width-1)+"…"+reset)
		}
		lines = append(lines, notes...)
	}
	if unfolded && c.Details != "" {
		lead := indent + "    "
		for l := range strings.SplitSeq(strings.TrimRight(c.Details, "\n"), "\n") {
			lines = append(lines, wrapped(l, width, lead, lead, detailStyle(c.Details, l))...)
		}
	}
	return lines
}

// detailStyle returns the style of a line in the details of a call. If the details contain a unified diff, it returns
// the colours of a diff.
func detailStyle(details, line string) string {
	if !strings.Contains(details, "\n@@ ") {
		return dim
	}
	switch {
	case strings.HasPrefix(line, "@@ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return cyan
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return dim
}

// groupFrom is the number of successive calls of one tool from which on they are drawn as a group.
const groupFrom = 4

// group draws finished calls of one tool as one line.
func group(blocks []*block, width int) []string {
	failed := 0
	for _, b := range blocks {
		if b.call.State != CallDone {
			failed++
		}
	}
	c := Call{Name: fmt.Sprintf("%s × %d", blocks[0].call.Name, len(blocks)), Depth: blocks[0].call.Depth,
		State: CallDone, Note: "ok"}
	if failed > 0 {
		c.State, c.Note = CallWarned, fmt.Sprintf("· %d not ok", failed)
	}
	return c.draw(width, false)
}

// drop removes the unfinished answer.
func (m *model) drop() {
	if m.current != nil && m.current.kind == blockAnswer {
		for i := len(m.blocks) - 1; i >= 0; i-- {
			if m.blocks[i] == m.current {
				m.blocks = append(m.blocks[:i], m.blocks[i+1:]...)
				break
			}
		}
		m.current, m.stale = nil, true
		return
	}
	m.settle()
}

// call adds a tool call, or updates it if it is shown already.
func (m *model) call(c Call) {
	b := m.calls[c.Key]
	if b == nil {
		m.settle()
		b = m.push(blockCall, "")
		m.calls[c.Key] = b
	}
	b.call, b.fresh = c, false
	m.stale = true
}
