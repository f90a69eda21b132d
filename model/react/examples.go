package react

import "strings"

// contradicts reports whether the text after an action shows that the action is not meant as it was read: its arguments
// follow twice, or another action follows and the first has no arguments.
func contradicts(after string, wrote bool) bool {
	if wrote {
		_, after = cutLine(after) // the rest of the line with the object
	}
	line, _ := nextLine(after)
	switch mark, _ := marker(line); mark {
	case markArgs:
		return wrote
	case markAction:
		return !wrote
	}
	return false
}

// allQuoted reports whether each line of a text with words begins with a quotation sign. Otherwise, the lines with the
// sign are quotations, which are never a step.
func allQuoted(text string) bool {
	found := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, ">"):
			found = true
		case line != "":
			return false
		}
	}
	return found
}

// isExample reports whether all actions of a text are in closed code blocks, and text that is no step follows the last
// of these blocks. The action is then a part of an explanation.
func isExample(text string) bool {
	inside, has, example := false, false, false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		mark, _ := marker(trimmed)
		switch {
		case strings.HasPrefix(trimmed, fence):
			if inside && has {
				example, has = false, false
				inside = false
				text = after(text, line)
				if rest := strings.TrimSpace(text); rest != "" && !strings.HasPrefix(rest, fence) {
					first, _ := cutLine(rest)
					next, _ := marker(first)
					example = next == "" && !strings.HasPrefix(rest, "<")
				}
				continue
			}
			inside, has = !inside, false
		case mark == markAction && !inside:
			return false
		case mark == markAction:
			has = true
		}
		text = after(text, line)
	}
	return example
}

// after returns the text behind its first line.
func after(text, line string) string { return text[min(len(line), len(text)):] }
