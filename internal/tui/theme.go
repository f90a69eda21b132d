package tui

import (
	"image/color"
	"math"
	"strings"
)

// The themes. All use the colours of the terminal. If the terminal reports its background (OSC 11) and has 256 colours,
// the colours of [onDark] or [onLight] replace them, because the terminal's own yellow or grey may be hard to read
// there.
const (
	ThemeColor    = "colour"   // colours, and grey text for remarks
	ThemeContrast = "contrast" // colours, and no grey text
	ThemePlain    = "plain"    // no colours: bold, dim and underlined text only
)

// Themes lists the names of the themes; the first applies if none is chosen.
func Themes() []string { return []string{ThemeColor, ThemeContrast, ThemePlain} }

// readable is the least contrast of a colour with the background (WCAG 2.2, success criterion 1.4.3).
const readable = 4.5

// onDark and onLight have the colours that replace the terminal's, by SGR parameter: indexes of the 256 colours of
// xterm, which terminals rarely change, with their values. Parameter 2 (dim) becomes a grey.
var (
	onDark = map[string]tone{"2": {"247", 0x9e9e9e}, "31": {"210", 0xff8787}, "32": {"114", 0x87d787},
		"33": {"179", 0xd7af5f}, "35": {"176", 0xd787d7}, "36": {"80", 0x5fd7d7}}
	onLight = map[string]tone{"2": {"240", 0x585858}, "31": {"124", 0xaf0000}, "32": {"22", 0x005f00},
		"33": {"94", 0x875f00}, "35": {"127", 0xaf00af}, "36": {"24", 0x005f87}}
)

// tone is a colour of xterm.
type tone struct {
	index string
	rgb   uint32
}

// luminance is the relative luminance of a colour, 0 to 1 (WCAG 2.2).
func luminance(r, g, b float64) float64 {
	linear := func(x float64) float64 {
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func (t tone) luminance() float64 {
	return luminance(float64(t.rgb>>16)/255, float64(t.rgb>>8&0xff)/255, float64(t.rgb&0xff)/255)
}

// contrast is the contrast of two luminances, 1 to 21 (WCAG 2.2).
func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

// look is a theme on a background. Lines are drawn again when the look changes.
type look struct {
	theme string
	// swap replaces SGR parameters. A value of "" removes the colour, because it cannot be read on the background. It
	// is nil if the background is not known.
	swap map[string]string
}

// newLook returns the look of a theme. If background is nil, the colours are the terminal's.
func newLook(theme string, background color.Color) *look {
	l := &look{theme: theme}
	if background == nil || theme == ThemePlain {
		return l
	}
	r, g, b, _ := background.RGBA()
	behind := luminance(float64(r)/0xffff, float64(g)/0xffff, float64(b)/0xffff)
	tones := onLight
	if contrast(behind, 1) > contrast(behind, 0) {
		tones = onDark
	}
	l.swap = map[string]string{}
	for p, t := range tones {
		l.swap[p] = ""
		if contrast(behind, t.luminance()) >= readable {
			l.swap[p] = "38;5;" + t.index
		}
	}
	return l
}

// all applies the look to lines.
func (l *look) all(lines []string) []string {
	if l.own() {
		return lines
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = l.line(line)
	}
	return out
}

// own reports whether lines stay as they are.
func (l *look) own() bool {
	return l == nil || l.swap == nil && (l.theme == "" || l.theme == ThemeColor)
}

// line applies the look to a line. It changes only SGR sequences. All of them come from the program, because other
// texts are escaped.
func (l *look) line(line string) string {
	if l.own() || !strings.Contains(line, "\x1b[") {
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
		if args := l.styles(after[:end]); args != "" {
			b.WriteString("\x1b[" + args + "m")
		}
		line = after[end+1:]
	}
}

// styles returns the SGR parameters with which a sequence is drawn. It returns "" if the sequence is removed.
func (l *look) styles(args string) string {
	if args == "0" || args == "1" {
		return args // the most frequent ones
	}
	var kept []string
	for p := range strings.SplitSeq(args, ";") {
		colour := len(p) == 2 && (p[0] == '3' || p[0] == '4' || p[0] == '9') || len(p) == 3
		switch other, swaps := l.swap[p]; {
		case l.theme == ThemeContrast && p == "2", l.theme == ThemePlain && colour, swaps && other == "":
		case swaps:
			kept = append(kept, other)
		default:
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ";")
}
