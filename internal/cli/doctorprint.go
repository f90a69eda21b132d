package cli

import (
	"fmt"
	"strings"
)

// print shows a check: a line with its mark, more lines of its text, its phases and its remedy.
func (d *doctor) print(c check) error {
	mark := map[string]string{checkOK: d.outStyle(green, "✓"), checkWarn: d.outStyle(yellow, "!"),
		checkFail: d.outStyle(red, "✗"), checkSkip: d.outStyle(dim, "-")}[c.Status]
	var b strings.Builder
	head := c.Area
	if c.Name != "" {
		head += " " + safeLine(c.Name)
	}
	lines := strings.Split(c.Text, "\n")
	fmt.Fprintf(&b, "%s %s  %s\n", mark, d.outStyle(bold, head), safeLine(lines[0]))
	for _, l := range lines[1:] {
		fmt.Fprintf(&b, "    %s\n", safeLine(l))
	}
	if len(c.Phases) > 0 {
		var phases []string
		for _, p := range c.Phases {
			phases = append(phases, p.Name+" "+took(p.Millis))
		}
		fmt.Fprintf(&b, "    %s\n", d.outStyle(dim, strings.Join(phases, ", ")))
	}
	if c.Remedy != "" {
		for i, l := range wrap(c.Remedy, d.width()-8) {
			fmt.Fprintf(&b, "    %s %s\n", []string{"→", " "}[min(i, 1)], safeLine(l))
		}
	}
	return d.write([]byte(b.String()))
}
