package cli

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/trust"
)

// The list that a person sees before trusting a project cannot name every effect of a file. So the record of the
// person's consent also keeps the texts of small files, and when tenon asks again, it shows the changed lines. Words
// that look like credentials are masked, and files of variables are not kept, so that a record contains no secrets.

// The bounds of the texts of a record.
const (
	maxKeptText  = 64 << 10  // bytes of one file
	maxKeptTexts = 512 << 10 // bytes of all files
)

// The bounds of the changed lines that a question shows.
const (
	shownLines   = 60  // lines of one file
	shownTotal   = 300 // lines of all files
	shownLength  = 400 // characters of one line
	aroundChange = 2   // number of equal lines that are shown before and after a change
)

// secretLine matches a setting whose name says that its value is a secret.
var secretLine = lazyregexp.New(
	`(?i)((?:key|token|secret|passw(?:or)?d|passphrase|passcode|pwd|cookie|` +
		`[_-]pass|jwt|[_-]sk)[0-9]*["']?\s*[:=]\s*)([^\s,}\]]+)`)

// keptTexts returns the texts of a project's small files by name, as the configuration read them. The configuration
// file comes first.
func keptTexts(cfg *config.Config, p trust.Project) map[string]string {
	names := slices.Sorted(maps.Keys(p.Files))
	if main, err := filepath.Rel(p.Dir, p.Path); err == nil {
		main = filepath.ToSlash(main)
		if i := slices.Index(names, main); i > 0 {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, main)
		}
	}
	texts, sum := map[string]string{}, 0
	for _, name := range names {
		f := p.Files[name]
		if f.Size > maxKeptText || sum+int(f.Size) > maxKeptTexts || strings.Contains(filepath.Base(name), ".env") {
			continue
		}
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(cfg.Dir, path)
		}
		data, err := cfg.ReadFile(path, maxKeptText)
		if err != nil || !utf8.Valid(data) || slices.Contains(data, 0) {
			continue
		}
		texts[name] = maskWords(string(data))
		sum += len(data)
	}
	return texts
}

// maskWords replaces words that look like credentials, credentials of URLs, and the values of settings that are secret
// by name. References such as ${NAME} stay.
func maskWords(text string) string {
	text = config.MaskText(text)
	text = secretLine().ReplaceAllStringFunc(text, func(found string) string {
		m := secretLine().FindStringSubmatch(found)
		if strings.ContainsAny(m[2], "${[") || len(m[2]) < 4 {
			return found
		}
		return m[1] + "***"
	})
	var b strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, isSeparator)
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		if config.LooksLikeToken(word) {
			word = "***"
		}
		b.WriteString(word)
		rest := strings.TrimLeftFunc(text[end:], isSeparator)
		b.WriteString(text[end : len(text)-len(rest)])
		text = rest
	}
	return b.String()
}

func isSeparator(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`,;:=()[]{}<>|&", r) }

// textLines returns the changed lines of files, if the record has their text.
func textLines(v verdict, width int) (lines []string) {
	if v.cfg == nil || v.Record == nil || len(v.Diff.Changed) == 0 {
		return nil
	}
	now, left := keptTexts(v.cfg, v.Project), shownTotal
	for _, name := range v.Diff.Changed {
		before, had := v.Record.Texts[name]
		after, has := now[name]
		if !had || !has {
			continue
		}
		before = maskWords(before) // an older tenon masked less
		changes := changedLines(textOf(before), textOf(after))
		if before == after {
			changes = []string{"(only values that are masked)"}
		}
		lines = append(lines, "", "Changed lines of "+shownLine(name))
		room := max(min(shownLines, left), 0)
		for _, line := range changes[:min(room, len(changes))] {
			lines = append(lines, wrapHard("  "+shownLine(bounded(line, shownLength)), width)...)
		}
		if rest := len(changes) - room; rest > 0 {
			lines = append(lines, fmt.Sprintf("  … and %s, not shown; read the file", plural(rest, "more line")))
		}
		left -= len(changes)
	}
	return lines
}

// textOf returns the lines of a text.
func textOf(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// bounded cuts a long text and says so.
func bounded(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return fmt.Sprintf("%s … (%s)", string(r[:most]), plural(len(r)-most, "more character"))
}

// maxCells bounds the work of a comparison of lines.
const maxCells = 4 << 20

// changedLines returns the difference of two texts in the form of diff -u, without its heads.
func changedLines(a, b []string) (out []string) {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var all []string // each line with its mark
	for _, line := range a[:start] {
		all = append(all, " "+line)
	}
	all = append(all, compared(a[start:len(a)-end], b[start:len(b)-end])...)
	for _, line := range a[len(a)-end:] {
		all = append(all, " "+line)
	}
	last := -1 // of the lines in out
	for i, line := range all {
		near := false
		for _, other := range all[max(0, i-aroundChange):min(len(all), i+aroundChange+1)] {
			near = near || other[0] != ' '
		}
		if !near {
			continue
		}
		if last >= 0 && last != i-1 {
			out = append(out, " …")
		}
		out, last = append(out, line), i
	}
	return out
}

// compared returns the lines of two texts with their marks. Texts that take too long to compare are shown one after the
// other.
func compared(a, b []string) (out []string) {
	if len(a)*len(b) > maxCells {
		for _, line := range a {
			out = append(out, "-"+line)
		}
		for _, line := range b {
			out = append(out, "+"+line)
		}
		return out
	}
	longest := make([][]int32, len(a)+1) // common lines of the ends of both
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}

// changedItems returns the items that only changed their text, and removes them from both lists.
func changedItems(added, removed []trust.Item) (changed [][2]trust.Item, onlyAdded, onlyRemoved []trust.Item) {
	at := func(list []trust.Item, i trust.Item) (found []trust.Item) {
		for _, other := range list {
			if i.Path != "" && other.Kind == i.Kind && other.Path == i.Path {
				found = append(found, other)
			}
		}
		return found
	}
	for _, i := range added {
		was, now := at(removed, i), at(added, i)
		if len(was) == 1 && len(now) == 1 {
			changed = append(changed, [2]trust.Item{was[0], i})
			continue
		}
		onlyAdded = append(onlyAdded, i)
	}
	for _, i := range removed {
		if !slices.ContainsFunc(changed, func(c [2]trust.Item) bool { return c[0] == i }) {
			onlyRemoved = append(onlyRemoved, i)
		}
	}
	return changed, onlyAdded, onlyRemoved
}
