package cli

import (
	"cmp"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// The help of a verb is written once, with line breaks for a wide terminal. It has paragraphs, lists of names with
// their meanings, and examples. This file parses it again, for narrow terminals and for man(1).

// helpBlock is a part of a help text.
type helpBlock struct {
	lines []string // as written
	// An entry of a list has a name and a meaning. The name includes its indent and its padding up to the meaning.
	name, meaning string
	prose         bool // the lines are one paragraph
}

// helpBlocks splits a help text into its parts.
func helpBlocks(text string) (out []helpBlock) {
	for _, line := range strings.Split(text, "\n") {
		last := len(out) - 1
		switch name, meaning := helpEntry(line); {
		case line == "":
			out = append(out, helpBlock{lines: []string{""}})
		case name != "":
			out = append(out, helpBlock{lines: []string{line}, name: name, meaning: meaning})
		case line[0] == ' ' && last >= 0 && !out[last].prose && out[last].name == "" && out[last].lines[0] != "":
			out[last].lines = append(out[last].lines, line)
		case line[0] == ' ': // an example
			out = append(out, helpBlock{lines: []string{line}})
		case last >= 0 && out[last].prose:
			out[last].lines = append(out[last].lines, line)
		default:
			out = append(out, helpBlock{lines: []string{line}, prose: true})
		}
	}
	return out
}

// helpEntry splits an indented line into a name and its meaning, which two or more blanks separate. Both are empty for
// any other line. Examples may end with a comment.
func helpEntry(line string) (name, meaning string) {
	text := strings.TrimLeft(line, " ")
	if text == line || strings.HasPrefix(text, "tenon ") {
		return "", ""
	}
	gap := strings.Index(text, "  ")
	if gap < 0 {
		return "", ""
	}
	meaning = strings.TrimLeft(text[gap:], " ")
	if meaning == "" || meaning[0] == '#' {
		return "", ""
	}
	return line[:len(line)-len(meaning)], meaning
}

// fitHelp breaks the lines of a help text that are wider than the terminal.
func fitHelp(text string, width int) string {
	var b strings.Builder
	for i, block := range helpBlocks(text) {
		if i > 0 {
			b.WriteByte('\n')
		}
		wide := false
		for _, l := range block.lines {
			wide = wide || utf8.RuneCountInString(l) > width
		}
		column := utf8.RuneCountInString(block.name)
		switch {
		case wide && block.prose:
			fill(&b, strings.Join(block.lines, " "), 0, 0, width)
		case wide && block.name != "" && column <= width/2:
			b.WriteString(block.name)
			fill(&b, block.meaning, column, column, width)
		case wide && block.name != "": // the meaning begins on the next line
			b.WriteString(strings.TrimRight(block.name, " ") + "\n        ")
			fill(&b, block.meaning, 8, 8, width)
		default:
			b.WriteString(strings.Join(block.lines, "\n"))
		}
	}
	return b.String()
}

// fill writes the words of a text in lines. The first line begins in column at, the others in column indent.
func fill(b *strings.Builder, text string, at, indent, width int) {
	first := true
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case first:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
		first = false
	}
}

// help prints the description, usage and flags of a verb. On a terminal it fits them to its width.
func (a *app) help(cmd *cobra.Command, _ []string) {
	text := cmp.Or(cmd.Long, cmd.Short)
	if text = strings.TrimRight(text, " \n"); text != "" {
		text += "\n\n"
	}
	if cmd.Runnable() || cmd.HasSubCommands() {
		text += cmd.UsageString()
	}
	if a.outTTY {
		text = fitHelp(text, a.width())
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), text) // the writer keeps its error; see noting
}
