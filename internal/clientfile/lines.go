package clientfile

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// putTOML puts the table of an entry at the end of a file. If the file has an older table of the entry, it replaces it
// in place.
func (c Client) putTOML(text string, e Entry) (string, error) {
	rest, err := c.dropTOML(text, e.Name)
	if err != nil {
		return "", err
	}
	block := "[" + c.section + "." + bare(e.Name) + "]\ncommand = " + quoted(e.Command) + "\nargs = " +
		list(e.Args) + "\n"
	if strings.TrimSpace(rest) == "" {
		return rest + block, nil
	}
	return strings.TrimRight(rest, "\n") + "\n\n" + block, nil
}

// bare returns a key for TOML. It is quoted only if necessary.
func bare(name string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(name) {
		return name
	}
	return quoted(name)
}

// dropTOML removes the table of an entry and the tables below it.
func (c Client) dropTOML(text, name string) (string, error) {
	if strings.Contains(text, `"""`) || strings.Contains(text, "'''") {
		return "", c.unclear("it has texts of several lines")
	}
	head := regexp.MustCompile(`^\s*\[\s*` + regexp.QuoteMeta(c.section) + `\s*\.\s*("?)` + regexp.QuoteMeta(name) +
		`("?)\s*(\.[^\]]*)?\]\s*(#.*)?$`)
	inline := regexp.MustCompile(`^\s*"?` + regexp.QuoteMeta(c.section) + `"?\s*[.=]`)
	within := regexp.MustCompile(`^\s*"?` + regexp.QuoteMeta(name) + `"?\s*[.=]`)
	whole := regexp.MustCompile(`^\s*\[\s*` + regexp.QuoteMeta(c.section) + `\s*\]`)
	var kept []string
	skips, top, inside := false, true, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "[") && !strings.HasPrefix(strings.TrimSpace(line), "[\"") {
			skips, top, inside = head.MatchString(strings.TrimRight(line, "\r\n")), false, whole.MatchString(line)
		}
		if top && inline.MatchString(line) || inside && within.MatchString(line) {
			return "", c.unclear("the entry is written in another form")
		}
		if !skips {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, ""), nil
}

// putYAML puts an entry into the mapping of extensions.
func (c Client) putYAML(text string, e Entry) (string, error) {
	rest, err := c.dropYAML(text, e.Name)
	if err != nil {
		return "", err
	}
	lines := slices.Collect(strings.Lines(rest))
	at, by, err := c.sectionYAML(lines)
	if err != nil {
		return "", err
	}
	by = cmp.Or(by, "  ")
	block := by + quotedKey(e.Name) + ":\n"
	for _, pair := range [][2]string{{"enabled", "true"}, {"type", "stdio"}, {"name", quoted(e.Name)},
		{"cmd", quoted(e.Command)}, {"args", list(e.Args)}, {"timeout", "300"}} {
		block += by + by + pair[0] + ": " + pair[1] + "\n"
	}
	if at < 0 {
		if rest != "" && !strings.HasSuffix(rest, "\n") {
			rest += "\n"
		}
		return rest + c.section + ":\n" + block, nil
	}
	lines[at] = c.section + ":\n" + block
	return strings.Join(lines, ""), nil
}

// quotedKey returns a key of YAML.
func quotedKey(name string) string { return strings.Trim(bare(name), " ") }

// dropYAML removes an entry.
func (c Client) dropYAML(text, name string) (string, error) {
	lines := slices.Collect(strings.Lines(text))
	at, by, err := c.sectionYAML(lines)
	if err != nil || at < 0 || by == "" {
		return text, err
	}
	key := regexp.MustCompile(`^` + by + `["']?` + regexp.QuoteMeta(name) + `["']?\s*:`)
	var kept []string
	skips, over := false, false
	for i, line := range lines {
		content := strings.TrimSpace(line) != "" && !strings.HasPrefix(strings.TrimSpace(line), "#")
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if i > at && content && depth < len(by) {
			over, skips = true, false
		}
		if i > at && !over && content && depth == len(by) {
			skips = key.MatchString(line)
		}
		if !skips || !content && depth < len(by) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, ""), nil
}

// sectionYAML finds the line with the key of the extensions, and the indentation of the entries below it. at is -1 if
// there is no such line, and by is "" if there are no entries.
func (c Client) sectionYAML(lines []string) (at int, by string, err error) {
	at = -1
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "---") && i > 0 || strings.HasPrefix(line, "{"):
			return 0, "", c.unclear("it is more than one block of keys")
		case at < 0 && strings.HasPrefix(line, c.section+":"):
			value, _, _ := strings.Cut(strings.TrimPrefix(trimmed, c.section+":"), "#")
			if v := strings.TrimSpace(value); v != "" && v != "{}" && v != "null" {
				return 0, "", c.unclear("'" + c.section + "' is written on one line")
			}
			at = i
		case at >= 0 && trimmed != "" && !strings.HasPrefix(trimmed, "#"):
			depth := len(line) - len(strings.TrimLeft(line, " "))
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(trimmed, "- ") {
				return 0, "", c.unclear("'" + c.section + "' is not a block of keys")
			}
			return at, strings.Repeat(" ", depth), nil
		}
	}
	return at, "", nil
}
