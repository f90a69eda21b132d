package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// A person who decides about a call must see all of its arguments. Long arguments are shortened visibly: every key is
// shown, and a value that is cut is followed by its size and digest. At the end are the size and digest of all
// arguments, and the command that prints them in full.

const (
	maxShownText  = 300 // characters of one text
	maxShownLines = 40  // lines of arguments; if there are more, nested containers are summarized
	maxShownKeys  = 300 // keys of one container; the others are counted
	minShownText  = 8   // characters of the beginning of a text on one line
)

// argBlock formats arguments in lines that fit a width. Each line begins with the indent, so that no argument can look
// like a line of tenon. whole is false if something is cut or summarized.
func argBlock(args json.RawMessage, width int, indent string, full bool) (lines []string, whole bool) {
	v := &argView{full: full, whole: true}
	v.value("", args, "", 0)
	if len(v.lines) > maxShownLines && !full {
		v = &argView{flat: true, whole: true}
		v.value("", args, "", 0)
	}
	for _, l := range v.lines {
		lines = append(lines, folded(l, width, indent)...)
	}
	return lines, v.whole
}

// argView formats JSON in lines.
type argView struct {
	full  bool // cut and summarize nothing
	flat  bool // summarize nested containers
	lines []string
	whole bool
	note  string // size and digest of the value that was just cut
}

// value writes a value between the texts before and after.
func (v *argView) value(before string, raw []byte, after string, depth int) {
	raw = bytes.TrimSpace(raw)
	pad := strings.Repeat("  ", depth)
	switch {
	case !json.Valid(raw):
		v.noted(pad, before, v.text(string(raw)), after)
	case raw[0] == '{' || raw[0] == '[':
		v.container(before, raw, after, depth)
	case raw[0] == '"':
		v.lined(pad, before, rawjson.String(raw), after)
	default:
		v.noted(pad, before, v.number(raw), after)
	}
}

// lined writes a string. Each line of a string that is shown whole has its own quotes and ends with \n, so that none
// can look like another argument.
func (v *argView) lined(pad, before, s, after string) {
	shown := v.text(s)
	pieces := slices.DeleteFunc(strings.SplitAfter(s, "\n"), func(p string) bool { return p == "" })
	if len(pieces) < 2 || v.note != "" || v.flat {
		v.noted(pad, before, shown, after)
		return
	}
	lead := before
	for i, p := range pieces {
		text, _ := judged(p, 0)
		if i == len(pieces)-1 {
			text += after
		}
		v.put(pad + lead + text)
		lead = strings.Repeat(" ", min(len([]rune(before)), 12))
	}
}

// noted writes a value and, if the value was cut, a second line with its size and digest.
func (v *argView) noted(pad, before, text, after string) {
	if v.note == "" {
		v.put(pad + before + text + after)
		return
	}
	v.put(pad + before + text)
	v.put(pad + "  … (" + v.note + ")" + after)
	v.note = ""
}

func (v *argView) put(line string) { v.lines = append(v.lines, line) }

// text formats a string. If the string is cut, it sets the note to its size and digest.
func (v *argView) text(s string) string {
	limit := maxShownText
	if v.full {
		limit = 0
	}
	shown, whole := judged(s, limit)
	if whole {
		return shown
	}
	v.whole, v.note = false, sized([]byte(s))
	return shown
}

// number formats a number, true, false or null.
func (v *argView) number(raw []byte) string {
	if len(raw) <= maxShownText || v.full {
		return safeLine(string(raw))
	}
	v.whole, v.note = false, sized(raw)
	return safeLine(string(raw[:maxShownText]))
}

// sized is the size and the digest of a value.
func sized(b []byte) string { return fmt.Sprintf("%d bytes, %s", len(b), digest(b)) }

func (v *argView) container(before string, raw []byte, after string, depth int) {
	pad := strings.Repeat("  ", depth)
	opening, closing := raw[:1], raw[len(raw)-1:]
	var keys []string
	var values [][]byte
	if raw[0] == '{' {
		for k, e := range rawjson.Members(raw) {
			shown, _ := judged(string(k), 0)
			if len(shown) > maxShownText && !v.full {
				shown, _ = judged(string(k), maxShownText)
				shown += " … (" + sized(k) + ")"
				v.whole = false
			}
			keys, values = append(keys, shown+": "), append(values, e)
		}
	} else {
		for e := range rawjson.Elements(raw) {
			keys, values = append(keys, ""), append(values, e)
		}
	}
	switch {
	case len(values) == 0:
		v.put(pad + before + string(opening) + string(closing) + after)
		return
	case depth > 0 && v.flat:
		v.whole = false
		v.put(pad + before + sumUp(raw, len(values)) + after)
		return
	}
	v.put(pad + before + string(opening))
	for i, e := range values {
		if i == maxShownKeys && !v.full && len(values) > maxShownKeys {
			v.whole = false
			v.put(fmt.Sprintf("%s  … %d more", pad, len(values)-i))
			break
		}
		comma := ","
		if i == len(values)-1 {
			comma = ""
		}
		v.value(keys[i], e, comma, depth+1)
	}
	v.put(pad + string(closing) + after)
}

// sumUp summarizes a container: its number of keys or values, its size and its digest.
func sumUp(raw []byte, n int) string {
	what := plural(n, "value")
	if raw[0] == '{' {
		what = plural(n, "key")
	}
	return fmt.Sprintf("%c…%c (%s, %s)", raw[0], raw[len(raw)-1], what, sized(raw))
}

// folded breaks a line to a width. Continuation lines are indented further.
func folded(line string, width int, indent string) []string {
	rest := strings.TrimLeft(line, " ")
	indent += line[:min(len(line)-len(rest), max(width/2, 0))]
	var lines []string
	for {
		room := max(width-1-breadth(indent), 10)
		taken, cut := 0, len(rest)
		for i, r := range rest {
			if taken += breadthOf(r); taken > room {
				cut = i
				break
			}
		}
		if cut == 0 {
			cut = len(rest) // the first character is wider than the terminal
		}
		lines = append(lines, indent+rest[:cut])
		if rest = rest[cut:]; rest == "" {
			return lines
		}
		if len(lines) == 1 {
			indent += "    "
		}
	}
}

// argLine formats arguments on one line of about room columns. If they do not fit, it writes the keys, the values that
// fit, and the sizes of the other values. Of a text it also writes the beginning, if there is room for it.
func argLine(args json.RawMessage, room int) (line string, whole bool) {
	raw := bytes.TrimSpace(args)
	if len(raw) <= 64*room { // anything longer cannot fit
		if line = compactLine(raw); breadth(line) <= room {
			return line, true
		}
	}
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return "(" + sized(raw) + ")", false
	}
	return argParts(raw, room) + " (" + sized(raw) + ")", false
}

// argParts writes the keys of arguments that do not fit on a line of room columns, with as much of the values as fits.
func argParts(raw json.RawMessage, room int) string {
	var parts []string
	used, more := 0, 0
	for k, v := range rawjson.Members(raw) {
		if used > 4*room { // hundreds of keys: count the rest
			more++
			continue
		}
		key, keyWhole := judged(string(k), 60)
		if !keyWhole {
			key += "…"
		}
		part := ""
		if len(v) <= 64*room {
			part = key + ":" + compactLine(v)
		}
		if part == "" || breadth(part) > max(room/3, 24) || used+breadth(part) > room {
			part = cutPart(key, v, max(room/2, 24), room-used-1)
		}
		used += breadth(part) + 1
		parts = append(parts, part)
	}
	if more > 0 {
		parts = append(parts, "… "+plural(more, "more key"))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// cutPart writes a key with the size of a value that does not fit. share and room are the columns for all of it. The
// beginning of a text is in quotes, and the mark of the cut is outside of them: key:"beginning"…(156 bytes).
func cutPart(key string, v []byte, share, room int) string {
	size := fmt.Sprintf("(%d bytes)", len(v))
	least := key + ":" + size
	left := min(share, room) - breadth(least) - len(`""…`)
	if left < minShownText || len(v) == 0 || v[0] != '"' || !json.Valid(v) {
		return least
	}
	for text := rawjson.String(v); left >= minShownText; left -= 4 { // wide characters have two columns
		shown, whole := judged(text, left)
		if part := key + ":" + shown + "…" + size; !whole && breadth(part) <= min(share, room) {
			return part
		}
	}
	return least
}

// argShort is argLine for a call that needs no decision. It never exceeds room.
func argShort(args json.RawMessage, room int) string {
	line, whole := argLine(args, room)
	if whole || breadth(line) <= room {
		return line
	}
	if raw := bytes.TrimSpace(args); len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		if line = argParts(raw, room); breadth(line) <= room {
			return line // the size and digest of all arguments are for decisions
		}
	}
	n := 0
	for range rawjson.Fields(args) {
		n++
	}
	return shorten(fmt.Sprintf("{…} (%s, %d bytes)", plural(n, "key"), len(args)), room)
}

// compactLine writes a value on one line.
func compactLine(raw []byte) string {
	if !json.Valid(raw) {
		return safeLine(string(raw))
	}
	raw = bytes.TrimSpace(raw)
	var parts []string
	switch raw[0] {
	case '{':
		for k, e := range rawjson.Members(raw) {
			key, _ := judged(string(k), 0)
			parts = append(parts, key+":"+compactLine(e))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case '[':
		for e := range rawjson.Elements(raw) {
			parts = append(parts, compactLine(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case '"':
		text, _ := judged(rawjson.String(raw), 0)
		return text
	}
	return safeLine(string(raw))
}
