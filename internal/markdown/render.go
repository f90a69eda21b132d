package markdown

import (
	"strings"
)

// renderer lays out blocks in lines.
type renderer struct {
	out []line
}

// blocks lays out blocks with an empty line between them. tight is the depth in lists. If it is not 0, there are empty
// lines only around code.
func (r *renderer) blocks(list []block, width, tight int) {
	for i, b := range list {
		if i > 0 && (tight == 0 || b.kind == code || list[i-1].kind == code) {
			r.out = append(r.out, nil)
		}
		r.block(b, max(width, 4), tight)
	}
}

func (r *renderer) block(b block, width, tight int) {
	switch b.kind {
	case heading:
		style := styleHeading
		if b.level > 2 {
			style = styleStrong
		}
		r.out = append(r.out, wrap(inlines(b.text, style), width)...)
	case rule:
		r.out = append(r.out, line{{text: strings.Repeat("─", min(width, 40)), style: styleDim}})
	case code:
		for _, l := range highlight(b.lines, b.lang) {
			for _, part := range cut(l, width-2) {
				r.out = append(r.out, append(line{{text: "  "}}, part...))
			}
		}
	case quote:
		r.indented(b.inner, width, tight, line{{text: "│ ", style: styleDim}}, line{{text: "│ ", style: styleDim}})
	case list:
		wide := 0
		for _, it := range b.items {
			wide = max(wide, Width(it.mark))
		}
		for _, it := range b.items {
			mark := strings.Repeat(" ", wide-Width(it.mark)) + it.mark + " "
			r.indented(it.blocks, width, tight+1, line{{text: mark, style: styleDim}},
				line{{text: strings.Repeat(" ", wide+1)}})
		}
	case table:
		r.out = append(r.out, layTable(b, width)...)
	default:
		r.out = append(r.out, wrap(inlines(b.text, ""), width)...)
	}
}

// indented lays out blocks after a mark. first precedes the first line, and rest the other lines.
func (r *renderer) indented(list []block, width, tight int, first, rest line) {
	inner := &renderer{}
	inner.blocks(list, width-first.width(), tight)
	if len(inner.out) == 0 {
		inner.out = []line{nil}
	}
	for i, l := range inner.out {
		lead := rest
		if i == 0 {
			lead = first
		}
		r.out = append(r.out, append(append(line{}, lead...), l...))
	}
}

// wrap breaks spans into lines of a width, between words. It cuts a word that is wider than a line.
func wrap(spans line, width int) []line {
	w := &wrapper{width: max(width, 1)}
	for _, s := range spans {
		for i, part := range strings.Split(s.text, "\n") {
			if i > 0 {
				w.word()
				w.newline()
			}
			for part != "" {
				n := strings.IndexByte(part, ' ')
				if n == 0 {
					w.word()
					w.space = append(w.space[:0], span{" ", s.style, s.link})
					part = strings.TrimLeft(part, " ")
					continue
				}
				if n < 0 {
					n = len(part)
				}
				w.pending = append(w.pending, span{part[:n], s.style, s.link})
				part = part[n:]
			}
		}
	}
	w.word()
	if len(w.line) > 0 || len(w.lines) == 0 {
		w.newline()
	}
	return w.lines
}

// wrapper collects words.
type wrapper struct {
	width   int
	lines   []line
	line    line
	used    int
	space   line // between the last word of the line and the pending word
	pending line // the pieces of the current word
}

// word adds the pending word to the line, or begins a new line with it.
func (w *wrapper) word() {
	if len(w.pending) == 0 {
		return
	}
	need := w.pending.width()
	switch gap := w.space.width(); {
	case w.used == 0:
	case w.used+gap+need <= w.width:
		w.line, w.used = append(w.line, w.space...), w.used+gap
	default:
		w.newline()
	}
	w.space = nil
	if need <= w.width {
		w.line, w.used = append(w.line, w.pending...), w.used+need
	} else {
		parts := cut(w.pending, w.width)
		w.lines = append(w.lines, parts[:len(parts)-1]...)
		w.line = parts[len(parts)-1]
		w.used = w.line.width()
	}
	w.pending = nil
}

func (w *wrapper) newline() {
	w.lines, w.line, w.used, w.space = append(w.lines, w.line), nil, 0, nil
}

// cut splits spans into lines of a width, at any character.
func cut(spans line, width int) []line {
	width = max(width, 1)
	var lines []line
	var now line
	used := 0
	for _, s := range spans {
		for s.text != "" {
			head := fitting(s.text, width-used)
			if head == "" && used == 0 { // one character is wider than the line
				head = Cut(s.text, width)
			}
			if head != "" {
				now, used = append(now, span{head, s.style, s.link}), used+Width(head)
			}
			if s.text = s.text[len(head):]; s.text != "" {
				lines, now, used = append(lines, now), nil, 0
			}
		}
	}
	return append(lines, now)
}
