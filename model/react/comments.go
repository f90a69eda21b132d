package react

import "strings"

// parseVisible parses a reply with [Parser]. It removes the comments that the step would be in, and those before them.
// Other comments stay, because they may be a part of the arguments or of the answer.
func parseVisible(text string) (visible string, p *Parser, step Step, err error) {
	for round := 0; ; round++ {
		p = NewParser(func(string, string) {})
		p.Feed(text)
		step, err = p.End()
		if !inComment(text, p.from) {
			return text, p, step, err
		}
		text = uncommented(text, p.from, round)
	}
}

// maxHidden bounds how often a reply is read again because the step that was found is in a comment.
const maxHidden = 16

// comment returns the bounds of the first HTML comment that begins at a position or behind it. One without an end
// extends to the end of the text. If there is none, both bounds are the length of the text.
func comment(text string, at int) (from, to int) {
	i := strings.Index(text[at:], "<!--")
	if i < 0 {
		return len(text), len(text)
	}
	from = at + i
	begin := from + len("<!--")
	if i = strings.Index(text[begin:], "-->"); i < 0 {
		return from, len(text)
	}
	return from, begin + i + len("-->")
}

// commentAround returns the bounds of the first HTML comment that ends behind a position; see comment.
func commentAround(text string, at int) (from, to int) {
	for from, to = comment(text, 0); to <= at && to < len(text); {
		from, to = comment(text, to)
	}
	return from, to
}

// inComment reports whether a position of a text is within an HTML comment. A step in one is not a step.
func inComment(text string, at int) bool {
	from, _ := commentAround(text, at)
	return from < at
}

// uncommented returns a text without the comment around a position, and without the comments before it. From round
// maxHidden on, it returns only the text before that comment.
func uncommented(text string, at, round int) string {
	from, to := commentAround(text, at)
	var out strings.Builder
	for begin := 0; begin < from; {
		i, j := comment(text[:from], begin)
		out.WriteString(text[begin:i])
		begin = j
	}
	if round < maxHidden {
		out.WriteString(text[to:])
	}
	return out.String()
}
