package transport

import "strings"

// LastWords returns the last three lines of stderr. Some programs write the reason further up: npm ends with advice,
// and Node.js with the stack. In this case, LastWords returns up to two lines that name an error, and the last line.
func (s *Stdio) LastWords() string { return lastWords(s.Stderr()) }

const (
	fewWords  = 3   // number of last lines
	farthest  = 200 // number of lines that are searched for an error
	mostNamed = 2   // number of returned lines that name an error
)

func lastWords(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-farthest):]
	few := max(0, len(lines)-fewWords)
	var named []string
	for i := len(lines) - 1; i >= 0 && len(named) < mostNamed; i-- {
		switch {
		case !namesError(lines[i]):
		case i >= few:
			return strings.Join(lines[few:], "\n")
		default:
			named = append([]string{lines[i]}, named...)
		}
	}
	if len(named) == 0 {
		return strings.Join(lines[few:], "\n")
	}
	return strings.Join(append(named, lines[len(lines)-1]), "\n")
}

// namesError reports whether a line describes an error, such as "TypeError: …", "fatal: …" or "npm error code E404".
func namesError(line string) bool {
	line = strings.ToLower(strings.TrimSpace(line))
	for _, npm := range []string{"npm error ", "npm err! "} {
		if rest, ok := strings.CutPrefix(line, npm); ok {
			return strings.HasPrefix(rest, "code ") || strings.HasPrefix(rest, "404 not found")
		}
	}
	return strings.HasPrefix(line, "fatal") || strings.HasPrefix(line, "panic: ") ||
		strings.Contains(line, "error: ") || strings.Contains(line, "exception: ")
}
