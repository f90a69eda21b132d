package react

import (
	"errors"
	"strings"

	"github.com/tenonhq/tenon/model/textcall"
)

// markless reads a reply in which no line begins with an action or an answer. A step in a comment does not count.
func (r *read) markless(text string) (Step, error) {
	for round := 0; ; round++ {
		text = strings.TrimSpace(text)
		c, before, err := textcall.Find(text, r.tools)
		at := len(before)
		var find func() (Step, error)
		if errors.Is(err, textcall.ErrNone) {
			at, find = r.onOneLine(text)
		} else {
			find = func() (Step, error) { return r.called(c, before, err) }
		}
		switch {
		case find == nil:
			return Step{}, textcall.ErrNone
		case !inComment(text, at):
			return find()
		}
		text = uncommented(text, at, round)
	}
}

// called returns the step of a call. before is the text in front of it.
func (r *read) called(c textcall.Call, before string, err error) (Step, error) {
	r.lead = before
	step, ok := stepOf(c)
	if step.Thought == "" {
		step.Thought = plainThought(before)
	}
	if err == nil && ok {
		r.explicit = true
		r.Repairs = append(r.Repairs, append(c.Repairs, otherForm)...)
	}
	return step, err
}

// onOneLine looks for a step in the line of a thought. It returns where the step begins and a function that reads it,
// or no function if there is none.
func (r *read) onOneLine(text string) (at int, find func() (Step, error)) {
	if !hasThought(text) {
		return 0, nil
	}
	low := lowered(text)
	if i := strings.LastIndex(low, " final answer:"); i >= 0 {
		return i, func() (Step, error) {
			r.Repairs = append(r.Repairs, "the step was written on one line")
			tail := strings.TrimSpace(text[i+len(" final answer:"):])
			return r.answer(Step{Thought: plainThought(text[:i])}, tail, "")
		}
	}
	i := strings.Index(low, " action:")
	if i < 0 {
		return 0, nil
	}
	return i, func() (Step, error) {
		r.lead = text[:i]
		step := Step{Thought: plainThought(text[:i])}
		line, rest := cutLine(text[i+len(" action:"):])
		if err := r.action(&step, strings.TrimSpace(line), rest); err != nil || !r.explicit {
			return step, &textcall.NoCallError{Why: "an action in a thought is not a step", Nearest: r.Nearest}
		}
		return step, nil
	}
}

// lowered returns a text with the letters of ASCII in lower case. It is as long as the text, unlike the result of
// strings.ToLower, so that positions in it are positions in the text.
func lowered(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func stepOf(c textcall.Call) (Step, bool) {
	if c.IsFinal {
		return Step{Thought: oneLine(c.Thought), Final: true, Answer: strings.TrimSpace(c.Answer)}, true
	}
	return Step{Thought: oneLine(c.Thought), Action: c.Name, Args: c.Args}, c.Name != ""
}

func hasThought(text string) bool {
	for line := range strings.Lines(text) {
		if mark, _ := marker(line); mark == markThought {
			return true
		}
	}
	return false
}

// plainThought removes the marker from the text before a step, which is its thought.
func plainThought(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if mark, rest := marker(line); mark == markThought {
			line = rest
		}
		if !strings.HasPrefix(strings.TrimSpace(line), fence) {
			lines = append(lines, line)
		}
	}
	return joined(lines)
}
