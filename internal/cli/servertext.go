package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tenonhq/tenon/mcp/elicit"
)

// The text of a server is marked so that it cannot be mistaken for text of tenon: each line begins with a bar, tenon
// breaks the lines, and hidden characters are escaped.

const (
	bar           = "  | "
	maxSaidLines  = 40
	maxSaidLine   = 600 // characters
	maxEmptyLines = 2
)

// said formats the text of a server. Whole is false if a part is left out; the last line then shows the full size and
// the digest.
func (a *app) said(text string) (lines []string, whole bool) {
	list, whole := serverLines(text)
	for i, line := range list {
		switch last := i == len(list)-1; {
		case last && !whole:
			line = "  " + line
			lines = append(lines, folded(line, a.width(), "")...)
		case len(lines) >= maxSaidLines:
			line = "  " + inAll(text)
			return append(lines, folded(line, a.width(), "")...), false
		case line == "":
			lines = append(lines, strings.TrimRight(bar, " "))
		default:
			lines = append(lines, folded(line, a.width(), bar)...)
		}
	}
	return lines, whole
}

// inAll has the size and the digest of a text of which a part is left out.
func inAll(text string) string { return "… " + sized([]byte(strings.TrimSpace(text))) + " in all" }

// serverLines returns the lines of a server's text, with hidden characters escaped. Whole is false if a part is left
// out; the last line then has the full size and the digest.
func serverLines(text string) (lines []string, whole bool) {
	whole, empty := true, 0
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, true
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			if empty++; empty <= maxEmptyLines {
				lines = append(lines, "")
			}
			continue
		}
		empty = 0
		if len(lines) >= maxSaidLines {
			whole = false
			break
		}
		shown, fits := plainRuns(line, maxSaidLine)
		whole = whole && fits
		lines = append(lines, shown)
	}
	if !whole {
		lines = append(lines, inAll(text))
	}
	return lines, whole
}

// plainRuns is judged without the outer quotes, and with the escapes of texts that are not JSON. It is for text that a
// person only reads, and does not approve byte by byte.
func plainRuns(s string, limit int) (shown string, whole bool) {
	shown, whole = inRuns(strings.TrimRight(s, " \t\r"), limit, plainRune)
	return strings.TrimSuffix(strings.TrimPrefix(shown, `"`), `"`), whole
}

// saySecret prints a warning about a form that asks for a secret.
func (a *app) saySecret(server string) {
	name, _ := judged(server, 100)
	for _, line := range folded(fmt.Sprintf("server %s asks for a secret: it gets what you type", name), a.width(),
		"  ! ") {
		_, _ = io.WriteString(a.err, a.errStyle(yellow, line)+"\n")
	}
}

// asksForSecret reports whether one of a server's requests is a form that asks for a secret.
func asksForSecret(requests json.RawMessage) bool {
	all, err := elicit.ParseRequests(requests)
	if err != nil {
		return false
	}
	for _, q := range all {
		if form, err := elicit.Parse(q.Params); err == nil && form.Secret {
			return true
		}
	}
	return false
}
