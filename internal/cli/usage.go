package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// printUsage writes the usage part of a command's help. It replaces cobra's template: executing a template would make
// the linker keep every method of every type.
func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n  ")
	switch {
	case cmd.Runnable() && cmd.HasAvailableSubCommands():
		b.WriteString(cmd.CommandPath() + " VERB")
	case cmd.Runnable():
		b.WriteString(cmd.UseLine())
	}
	section := func(title, text string) {
		if text != "" {
			b.WriteString("\n\n" + title + text)
		}
	}
	section("Aliases: ", strings.Join(cmd.Aliases, ", "))
	section("Examples:\n", cmd.Example)
	for _, g := range cmd.Groups() {
		section(g.Title, commandLines(cmd, func(c *cobra.Command) bool {
			return c.GroupID == g.ID && (c.IsAvailableCommand() || c.Name() == "help")
		}))
	}
	if len(cmd.Groups()) == 0 {
		section("Verbs:", commandLines(cmd, (*cobra.Command).IsAvailableCommand))
	}
	section("Flags:\n", flagLines(cmd.HasAvailableLocalFlags(), cmd.LocalFlags().FlagUsages()))
	section("Flags of all verbs:\n", flagLines(cmd.HasAvailableInheritedFlags(), cmd.InheritedFlags().FlagUsages()))
	section("Topics (tenon help TOPIC):", commandLines(cmd, (*cobra.Command).IsAdditionalHelpTopicCommand))
	b.WriteByte('\n')
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

// commandLines returns a line for each subcommand for which show returns true.
func commandLines(cmd *cobra.Command, show func(*cobra.Command) bool) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if show(c) {
			fmt.Fprintf(&b, "\n  %-*s %s", c.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}

func flagLines(available bool, usages string) string {
	if !available {
		return ""
	}
	return strings.TrimRight(usages, " \n")
}
