package tui

import (
	"slices"
	"strings"
)

// The themes. All use the colours of the terminal, so that light and dark backgrounds need no setting.
const (
	ThemeColor    = "colour"   // the terminal's colours, and dim text for remarks
	ThemeContrast = "contrast" // the terminal's colours, and no dim text
	ThemePlain    = "plain"    // no colours: bold, dim and underlined text only
)

// Themes lists the names of the themes; the first applies if none is chosen.
func Themes() []string { return []string{ThemeColor, ThemeContrast, ThemePlain} }

// themed applies the styles of a theme to a line. It changes only SGR sequences. All of them come from the program,
// because other texts are escaped.
func themed(line, theme string) string {
	if theme == "" || theme == ThemeColor || !strings.Contains(line, "\x1b[") {
		return line
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(line, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
		if end < 0 || after[end] != 'm' {
			b.WriteString("\x1b[")
			line = after
			continue
		}
		if args := keptStyles(after[:end], theme); args != "" {
			b.WriteString("\x1b[" + args + "m")
		}
		line = after[end+1:]
	}
}

// keptStyles returns the SGR parameters that a theme keeps. It returns "" if it keeps none.
func keptStyles(args, theme string) string {
	kept := slices.DeleteFunc(strings.Split(args, ";"), func(p string) bool {
		switch {
		case theme == ThemeContrast:
			return p == "2"
		case len(p) == 2 && (p[0] == '3' || p[0] == '4' || p[0] == '9') || len(p) == 3:
			return true // a colour
		}
		return false
	})
	return strings.Join(kept, ";")
}
