package cli

import (
	"strings"

	"github.com/tenonhq/tenon/internal/markdown"
)

// drawing is the answer of one request to a model that is drawn on a terminal while it arrives, as tenon chat draws it.
// A block is written once it cannot change any more, so that nothing on the terminal is ever taken back. The part of
// the next block that has arrived is a passing line on stderr.
type drawing struct {
	drawn  int  // bytes of the text that are on the terminal
	blocks bool // something is on the terminal
}

// draws reports whether answers are drawn. stdout has to be a terminal that can draw. The conversation of tenon chat
// --plain is not drawn, because the person asked for plain lines.
func (a *app) draws() bool {
	t, _ := a.env("TERM")
	return a.outTTY && a.format == formatText && !a.talking && t != "dumb"
}

// draw writes the blocks of a text that are not on the terminal yet. It leaves out blocks that may change, unless the
// text has ended.
func (f *follower) draw(text string, ended bool) error {
	d := &f.drawing
	n := markdown.Stable(text[d.drawn:])
	if ended {
		n = len(text) - d.drawn
	}
	for n > 0 {
		lines := markdown.Render(text[d.drawn:d.drawn+n], markdown.Options{Width: f.a.width(), Links: f.a.outColor,
			Plain: !f.a.outColor})
		for len(lines) > 0 && lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if d.blocks && len(lines) > 0 && text[d.drawn-1] == '\n' {
			lines = append([]string{""}, lines...)
		}
		d.drawn += n
		d.blocks = d.blocks || len(lines) > 0
		if err := f.put(strings.Join(append(lines, ""), "\n")); err != nil {
			return err
		}
		n = markdown.Stable(text[d.drawn:])
	}
	if rest := strings.Join(strings.Fields(text[d.drawn:]), " "); rest != "" {
		f.transient(lastColumns(safeLine(rest), f.a.width()-1))
	}
	return nil
}

// put writes lines with escape sequences, in which package markdown has made the text visible.
func (f *follower) put(lines string) error {
	f.clear()
	if f.thought {
		f.thought = false
		f.a.note("")
	}
	f.open = false
	return f.a.writeBytes([]byte(lines))
}

// lastColumns returns the end of a line that fits.
func lastColumns(s string, width int) string {
	over := markdown.Width(s) - width
	if over <= 0 {
		return s
	}
	for i := range s {
		if markdown.Width(s[:i]) > over {
			return "…" + s[i:]
		}
	}
	return s
}
