package cast

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/pty"
)

// Sizes in pixels, and the colours of the terminal.
const (
	charWidth  = 8.4
	lineHeight = 19
	margin     = 20
	titleBar   = 30
	ground     = "#0d1117"
	ink        = "#e6edf3"
	faintInk   = "#8b949e"
)

// palette has the first sixteen colours of a terminal, on the dark ground.
var palette = []string{"#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#a5d6ff", "#b1bac4",
	"#8b949e", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#a5d6ff", "#f0f6fc"}

// span is the time in which something is on the screen: the index of the first frame that has it, and of the first
// after it that does not.
type span struct{ from, to int }

// part is the content of a line, or the cursor in it. Its coordinates begin at the line's upper left corner.
type part struct {
	row   int
	drawn string
}

// SVG returns the recording as a picture that a style sheet animates, again and again. It shows the last frame to
// people who have asked for less motion, and in programs without animation.
func (r *Recording) SVG() []byte {
	parts := r.parts()
	spans := slices.SortedFunc(maps.Keys(parts), func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	var b bytes.Buffer
	width, height := float64(r.Columns)*charWidth+2*margin, r.Rows*lineHeight+titleBar+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0[1]f %[2]d" `+
		`width="%.0[1]f" height="%[2]d" role="img" aria-label="%[3]s">`+"\n", width, height, html.EscapeString(r.Title))
	r.writeStyle(&b, spans)
	ids := map[string]string{}
	b.WriteString("<defs>\n")
	for _, s := range spans {
		for _, p := range parts[s] {
			if ids[p.drawn] == "" {
				ids[p.drawn] = "p" + strconv.Itoa(len(ids))
				fmt.Fprintf(&b, "<g id=%q>%s</g>\n", ids[p.drawn], p.drawn)
			}
		}
	}
	fmt.Fprintf(&b, "</defs>\n"+`<rect width="%.0f" height="%d" rx="8" fill="%s"/>`+"\n", width, height, ground)
	for i, fill := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="18" r="6" fill="%s"/>`, margin+i*20, fill)
	}
	b.WriteString("\n<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" " +
		"font-size=\"14\" fill=\"" + ink + "\">\n")
	for i, s := range spans {
		class := "f"
		if s.to == len(r.Frames) {
			class = "f end"
		}
		fmt.Fprintf(&b, `<g class="%s" style="animation-name:k%d">`, class, i)
		for _, p := range parts[s] {
			fmt.Fprintf(&b, `<use href="#%s" x="%d" y="%d"/>`, ids[p.drawn], margin, titleBar+margin/2+p.row*lineHeight)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

// writeStyle writes the style sheet. step-end holds each value until the next key frame.
func (r *Recording) writeStyle(b *bytes.Buffer, spans []span) {
	fmt.Fprintf(b, "<style>\n.f{visibility:hidden;animation:%gs step-end infinite}\n.end{visibility:visible}\n",
		r.End.Seconds())
	b.WriteString("@media (prefers-reduced-motion:reduce){.f{animation:none}}\n")
	percent := func(frame int) string {
		return strconv.FormatFloat(100*r.Frames[frame].At.Seconds()/r.End.Seconds(), 'f', 3, 64) + "%"
	}
	for i, s := range spans {
		fmt.Fprintf(b, "@keyframes k%d{", i)
		if s.from > 0 {
			fmt.Fprintf(b, "0%%{visibility:hidden}")
		}
		fmt.Fprintf(b, "%s{visibility:visible}", percent(s.from))
		if s.to < len(r.Frames) {
			fmt.Fprintf(b, "%s{visibility:hidden}", percent(s.to))
		}
		b.WriteString("}\n")
	}
	b.WriteString("</style>\n")
}

// parts returns what is on the screen in each span of time.
func (r *Recording) parts() map[span][]part {
	parts := map[span][]part{}
	lane := func(draw func(f Frame) part) {
		for i := 0; i < len(r.Frames); {
			s, p := span{from: i}, draw(r.Frames[i])
			for ; i < len(r.Frames) && draw(r.Frames[i]) == p; i++ {
				s.to = i + 1
			}
			if p.drawn != "" {
				parts[s] = append(parts[s], p)
			}
		}
	}
	for row := range r.Rows {
		lane(func(f Frame) part { return part{row, drawLine(f.Lines[row])} })
	}
	lane(func(f Frame) part {
		if !f.Cursor {
			return part{}
		}
		return part{f.Row, fmt.Sprintf(`<rect x="%.1f" width="%.1f" height="%d" fill="%s" opacity=".6"/>`,
			float64(f.Column)*charWidth, charWidth, lineHeight, faintInk)}
	})
	return parts
}

// drawLine draws a line of the screen.
func drawLine(spans []pty.Span) string {
	var b bytes.Buffer
	for _, s := range spans {
		x, width := float64(s.Column)*charWidth, float64(s.Width)*charWidth
		fill, behind := colour(s.Style.Foreground), colour(s.Style.Background)
		if s.Style.Reverse {
			fill, behind = cmp.Or(behind, ground), cmp.Or(fill, ink)
		}
		if behind != "" {
			fmt.Fprintf(&b, `<rect x="%.1f" width="%.1f" height="%d" fill="%s"/>`, x, width, lineHeight, behind)
		}
		if s.Style.Faint && fill == "" {
			fill = faintInk
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="14" xml:space="preserve"`, x)
		if utf8.RuneCountInString(s.Text) > 1 {
			fmt.Fprintf(&b, ` textLength="%.1f"`, width)
		}
		for _, a := range []struct {
			on    bool
			value string
		}{
			{fill != "", ` fill="` + fill + `"`},
			{s.Style.Bold, ` font-weight="bold"`},
			{s.Style.Italic, ` font-style="italic"`},
			{s.Style.Underline, ` text-decoration="underline"`},
			{s.Style.Struck, ` text-decoration="line-through"`},
		} {
			if a.on {
				b.WriteString(a.value)
			}
		}
		b.WriteString(">")
		_ = xml.EscapeText(&b, []byte(s.Text)) // a bytes.Buffer has no errors
		b.WriteString("</text>")
	}
	return b.String()
}

// colour returns the colour of a style in SVG. The colours of xterm's palette after the sixteenth are a cube and a
// ramp of greys.
func colour(c string) string {
	n, err := strconv.Atoi(c)
	switch {
	case err != nil:
		return c // "", or #rrggbb
	case n < 16:
		return palette[n]
	case n >= 232:
		return "#" + strings.Repeat(fmt.Sprintf("%02x", 8+10*(n-232)), 3)
	}
	levels := []int{0, 95, 135, 175, 215, 255}
	n -= 16
	return fmt.Sprintf("#%02x%02x%02x", levels[n/36], levels[n/6%6], levels[n%6])
}
