package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/pty"
)

const (
	charWidth  = 8.4
	lineHeight = 19
	margin     = 20
	titleBar   = 30
)

// fills are the colours of SGR parameters, on the dark background of the picture.
var fills = map[string]string{
	"2":  "#8b949e",
	"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#a5d6ff",
	"90": "#8b949e",
	"91": "#ff7b72", "92": "#7ee787", "93": "#e3b341", "94": "#79c0ff", "95": "#d2a8ff", "96": "#a5d6ff",
}

// svg draws the lines of a terminal.
func svg(lines [][]pty.Cell) []byte {
	var b bytes.Buffer
	width := columns*charWidth + 2*margin
	height := float64(len(lines)*lineHeight + titleBar + 2*margin)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]g" width="%[1]g" height="%[2]g" `+
		`role="img" aria-label="tenon in a terminal">`+"\n", math.Round(width), math.Round(height))
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" rx="8" fill="#0d1117"/>`+"\n", width, height)
	for i, fill := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="18" r="6" fill="%s"/>`, margin+i*20, fill)
	}
	b.WriteString("\n<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" " +
		"font-size=\"14\" fill=\"#e6edf3\">\n")
	for i, cells := range lines {
		y := titleBar + margin + i*lineHeight
		for _, s := range spans(cells) {
			x, length := margin+float64(s.column)*charWidth, float64(utf8.RuneCountInString(s.text))*charWidth
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve"%s>`,
				x, y, length, attributes(s.style))
			_ = xml.EscapeText(&b, []byte(s.text)) // a bytes.Buffer has no errors
			b.WriteString("</text>\n")
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

type span struct {
	column int
	text   string
	style  string
}

// spans splits a line into runs of one style. It drops the spaces between them.
func spans(cells []pty.Cell) []span {
	var all []span
	for i := 0; i < len(cells); {
		first := i
		var text strings.Builder
		for ; i < len(cells) && cells[i].Style == cells[first].Style; i++ {
			text.WriteRune(cells[i].Rune)
		}
		s := span{first, text.String(), cells[first].Style}
		trimmed := strings.TrimLeft(s.text, " ")
		s.column += len(s.text) - len(trimmed)
		if s.text = strings.TrimRight(trimmed, " "); s.text != "" {
			all = append(all, s)
		}
	}
	return all
}

// attributes returns the SVG attributes for SGR parameters. Parameters without an entry are ignored.
func attributes(style string) string {
	all := ""
	for p := range strings.SplitSeq(style, ";") {
		if fill, ok := fills[p]; ok {
			all += fmt.Sprintf(` fill="%s"`, fill)
		}
		if p == "1" {
			all += ` font-weight="bold"`
		}
	}
	if strings.Count(all, " fill=") > 1 { // dim and coloured: the last one counts
		all = all[strings.LastIndex(all, " fill="):]
	}
	return all
}
