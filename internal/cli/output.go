package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tenonhq/tenon"
)

// The values of -o.
const (
	formatText  = "text"
	formatJSON  = "json"
	formatJSONL = "jsonl"
)

// again returns a tenon command for the person to type next. It has the flags that select the project, the store or the
// remote tenon of this command.
func (a *app) again(words ...string) string {
	for _, f := range []struct{ flag, value string }{{"-c", a.config}, {"--home", a.home}, {"--remote", a.remote},
		{"--token-file", a.tokenFile}} {
		if f.value != "" && f.value != "-" {
			words = append(words, f.flag, shellWord(f.value))
		}
	}
	return "tenon " + strings.Join(words, " ")
}

// resuming returns the command that resumes a run with the same tools and output tables.
func (a *app) resuming(run string) string {
	return a.again(slices.Concat([]string{"runs resume", run}, a.from.words(), a.wanted)...)
}

// shellWord quotes a word for a shell if necessary.
func shellWord(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-:@%+=,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (a *app) isJSON() bool { return a.format == formatJSON || a.format == formatJSONL }

// printJSON writes a value on one line, or indented on a terminal.
func (a *app) printJSON(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return tenon.Errorf(tenon.CodeInternal, "the result cannot be written as JSON: %w", err)
	}
	return a.printRaw(b)
}

// printRaw writes JSON. The value stays the same: hidden characters become \u escapes, and white
// space changes on a terminal.
func (a *app) printRaw(b []byte) error {
	if a.outTTY {
		var nice bytes.Buffer
		if a.format != formatJSONL && json.Indent(&nice, b, "", "  ") == nil {
			b = nice.Bytes()
		}
	}
	if !a.unescaped || a.outTTY {
		b = tenon.EscapeJSON(b)
	}
	return a.writeBytes(append(bytes.TrimRight(b, "\n"), '\n'))
}

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// printList writes a list as an array for json, as one line for each entry for jsonl, and as a table for text.
func printList[T any](a *app, list []T, header []string, row func(T) []string) error {
	return printListAs(a, list, header, row, a.table)
}

// printListAs is printList with another function that writes the table.
func printListAs[T any](a *app, list []T, header []string, row func(T) []string,
	table func([]string, [][]string) error) error {
	switch a.format {
	case formatJSON:
		if list == nil {
			list = []T{}
		}
		return a.printJSON(list)
	case formatJSONL:
		for _, v := range list {
			if err := a.printJSON(v); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, len(list))
	for i, v := range list {
		rows[i] = row(v)
	}
	return table(header, rows)
}

// table writes rows. On a terminal it aligns them under a header and shortens the last column if the terminal is
// narrow. Otherwise it separates the cells by tabs and writes no header.
func (a *app) table(header []string, rows [][]string) error { return a.aligned(header, rows, a.fit) }

// values is table for values that a person has to see whole: only the last column is shortened, so rows may be wider
// than the terminal.
func (a *app) values(header []string, rows [][]string) error {
	return a.aligned(header, rows, a.fitLast)
}

// aligned is table with a function that shortens the cells for a terminal.
func (a *app) aligned(header []string, rows [][]string, fit func(header []string, rows [][]string)) error {
	for _, r := range rows {
		for i, cell := range r {
			r[i] = safeLine(cell)
		}
	}
	if !a.outTTY {
		var b strings.Builder
		for _, r := range rows {
			b.WriteString(strings.Join(r, "\t") + "\n")
		}
		return a.write([]byte(b.String()))
	}
	if len(rows) == 0 {
		a.note("none")
		return nil
	}
	header = slices.Clone(header)
	fit(header, rows)
	widths := widest(header, rows)
	line := func(r []string) string {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(pad(cell, widths[i]) + "  ")
		}
		return strings.TrimRight(b.String(), " ")
	}
	var b strings.Builder
	b.WriteString(a.outStyle(dim, strings.ToUpper(line(header))) + "\n")
	for _, r := range rows {
		b.WriteString(line(r) + "\n")
	}
	return a.write([]byte(b.String()))
}

// emptyHint tells a person at a terminal what fills an empty list.
func (a *app) emptyHint(n int, hint string) {
	if n == 0 && a.outTTY && !a.isJSON() {
		a.hint("%s", hint)
	}
}

// widest returns the width of each column of a table in terminal columns.
func widest(header []string, rows [][]string) []int {
	widths := make([]int, len(header))
	for i, h := range header {
		widths[i] = breadth(h)
		for _, r := range rows {
			widths[i] = max(widths[i], breadth(r[i]))
		}
	}
	return widths
}

// leastColumn is the least width to which a column is shortened. A column is not shortened below the width of its name.
const leastColumn = 8

func leastWidths(header []string) []int {
	least := make([]int, len(header))
	for i, h := range header {
		least[i] = max(breadth(h), leastColumn)
	}
	return least
}

// fit shortens cells so that a row fits the width of the terminal: first the last column, then the widest ones. -o json
// and a pipe have the whole cells.
func (a *app) fit(header []string, rows [][]string) {
	widths, least, last := widest(header, rows), leastWidths(header), len(header)-1
	room := a.width() - 1 - 2*last
	for _, w := range widths[:last] {
		room -= w
	}
	widths[last] = min(widths[last], max(room, least[last]))
	narrow(widths, least, widths[last]-room, a.width()/2)
	for i, w := range widths {
		for _, r := range rows {
			r[i] = shorten(r[i], w)
		}
	}
}

// fitLast shortens the cells of the last column, down to twice leastColumn.
func (a *app) fitLast(header []string, rows [][]string) {
	used, last := 0, len(header)-1
	for _, w := range widest(header, rows)[:last] {
		used += w + 2
	}
	for _, r := range rows {
		r[last] = shorten(r[last], max(a.width()-used-1, 2*leastColumn))
	}
}

// narrow reduces the widths of columns by a sum, always the widest, down to the least widths. The first column has the
// names and ids that a person copies, so it is reduced only while it is wider than most, or if nothing else is left to
// reduce.
func narrow(widths, least []int, by, most int) {
	for ; by > 0; by-- {
		i := 0
		for k := 1; k < len(widths) && widths[0] <= most; k++ {
			if widths[k] > least[k] && (i == 0 || widths[k] > widths[i]) {
				i = k
			}
		}
		if widths[i] <= least[i] {
			return
		}
		widths[i]--
	}
}

// note writes a line for the person, on stderr.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.err, a.atWords(safeText(fmt.Sprintf(format, args...))))
}

// round formats a duration in its largest unit.
func round(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

// when formats a time: relative to now on a terminal, otherwise as RFC 3339.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if !a.outTTY {
		return t.UTC().Format(time.RFC3339)
	}
	d := time.Since(t)
	switch {
	case d < -5*time.Second:
		return "in " + round(-d)
	case d < 5*time.Second:
		return "now"
	case d < 48*time.Hour:
		return round(d) + " ago"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// took formats a duration in milliseconds.
func took(ms int64) string {
	if ms < 1 {
		return "<1ms"
	}
	if ms < 1000 {
		return strconv.FormatInt(ms, 10) + "ms"
	}
	d := time.Duration(ms) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	return d.String()
}

// plural returns a number with its noun, such as "1 tool" or "3 tools".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// The styles of text on a terminal (ECMA-48 SGR).
const (
	dim    = "2"
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (a *app) outStyle(style, s string) string { return paint(a.outColor, style, s) }
func (a *app) errStyle(style, s string) string { return paint(a.errColor, style, s) }
