package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenonhq/tenon"
)

func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "man [VERB...]",
		Short:   "Print a manual page, in roff",
		Long:    "Prints the manual page of tenon, or of one verb, for man(1).",
		Example: "  tenon man > tenon.1\n  tenon man tools call | man -l -",
		RunE: func(cmd *cobra.Command, args []string) error {
			page, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return tenon.Errorf(tenon.CodeInvalid, "there is no verb '%s'", strings.Join(args, " "))
			}
			return a.write([]byte(manPage(page)))
		},
	}
}

// manPage formats the help of a command with the macros of man(7).
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"tenon\" \"tenon\"\n", strings.ToUpper(name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	manText(&b, cmd.Long)
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH VERBS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(c.Name()), roff(c.Short))
			}
		}
	}
	manFlags(&b, "OPTIONS", cmd.LocalNonPersistentFlags())
	manFlags(&b, "GLOBAL OPTIONS", cmd.Root().PersistentFlags())
	if cmd.HasExample() {
		b.WriteString(".SH EXAMPLES\n")
		manText(&b, cmd.Example)
	}
	if !cmd.HasParent() {
		b.WriteString(".SH EXIT STATUS\n")
		manText(&b, exitCodesHelp())
		b.WriteString(".SH ENVIRONMENT\n")
		manText(&b, environmentHelp)
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names := "--" + f.Name
		if f.Shorthand != "" {
			names = "-" + f.Shorthand + ", " + names
		}
		value, text := pflag.UnquoteUsage(f)
		if value != "" {
			names += " " + value
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(names), roff(text))
	})
}

// manText writes paragraphs and lists, which man(1) fills, and examples, which it leaves as they are.
func manText(b *strings.Builder, s string) {
	for _, block := range helpBlocks(strings.Trim(s, "\n")) {
		switch {
		case block.prose:
			b.WriteString(".PP\n")
			for _, l := range block.lines {
				b.WriteString(roff(l) + "\n")
			}
		case block.name != "":
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(block.name)), roff(block.meaning))
		case block.lines[0] != "":
			b.WriteString(".PP\n.nf\n")
			for _, l := range block.lines {
				b.WriteString(roff(l) + "\n")
			}
			b.WriteString(".fi\n")
		}
	}
}

func roff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	s = strings.ReplaceAll(s, "-", `\-`)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
