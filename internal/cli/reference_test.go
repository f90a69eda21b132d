package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

//go:generate go test . -run TestReference -update

const referenceDir = "../../docs/reference/cli"

func testRoot() *cobra.Command {
	root := newRoot(newApp(stdio{strings.NewReader(""), &strings.Builder{}, &strings.Builder{}}), nil)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// visible walks all commands that are not hidden.
func visible(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			visible(c, do)
		}
	}
}

// TestReference keeps docs/reference/cli up to date with the commands.
func TestReference(t *testing.T) {
	root := testRoot()
	pages := map[string]string{"README.md": indexPage(root), "exit-codes.md": topicPage("Exit codes", exitCodesHelp()),
		"environment.md": topicPage("Environment", environmentHelp), "formatting.md": topicPage("Formatting", formattingHelp)}
	visible(root, func(c *cobra.Command) {
		if c != root {
			pages[pageName(c)] = page(c)
		}
	})
	if *update {
		if err := os.RemoveAll(referenceDir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(referenceDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range pages {
		golden(t, filepath.Join(referenceDir, name), want)
	}
	entries, err := os.ReadDir(referenceDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := pages[e.Name()]; !ok {
			t.Errorf("%s is about no verb; go test ./internal/cli -update removes it", e.Name())
		}
	}
}

// TestHelp compares the output of --help with golden files, and checks its rules: every command has a summary, a
// description, and an example that begins with the command's own name.
func TestHelp(t *testing.T) {
	visible(testRoot(), func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "_")
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			args := append(strings.Fields(c.CommandPath())[1:], "--help")
			if status := newApp(stdio{strings.NewReader(""), &out, &out}).main(t.Context(), args); status != 0 {
				t.Fatalf("status %d: %s", status, out.String())
			}
			golden(t, filepath.Join("testdata", "help", name+".txt"), out.String())
			if c.HasAvailableSubCommands() {
				return
			}
			if c.Short == "" || c.Long == "" || !strings.Contains(c.Example, c.CommandPath()) {
				t.Errorf("%s lacks a sentence, a text or an example with its name", c.CommandPath())
			}
		})
	})
}

func golden(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./internal/cli -update writes it", err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s is not fresh; go test ./internal/cli -update (-is +should be):\n%s", file, diff)
	}
}

const generated = "<!-- Made by go test ./internal/cli -update. Do not edit. -->\n\n"

func pageName(c *cobra.Command) string {
	return strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "tenon "), " ", "-") + ".md"
}

func indexPage(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# The command line\n\n%s\n", generated, root.Long)
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.TrimSuffix(g.Title, ":"))
		visible(root, func(c *cobra.Command) {
			top := c
			for top.HasParent() && top.Parent() != root {
				top = top.Parent()
			}
			if c != root && top.GroupID == g.ID && !c.HasAvailableSubCommands() {
				fmt.Fprintf(&b, "- [`%s`](%s): %s\n", c.CommandPath(), pageName(c), c.Short)
			}
		})
	}
	b.WriteString("\n## Topics\n\n- [Exit codes](exit-codes.md)\n- [Environment](environment.md)\n- [Formatting](formatting.md)\n")
	b.WriteString("\n## Flags of all verbs\n\n" + flagTable(root.PersistentFlags()))
	return b.String()
}

func page(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s\n\n%s.\n", generated, c.CommandPath(), c.Short)
	if c.Long != "" {
		fmt.Fprintf(&b, "\n```text\n%s\n```\n", c.Long)
	}
	if c.HasAvailableSubCommands() {
		b.WriteByte('\n')
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				fmt.Fprintf(&b, "- [`%s`](%s): %s\n", s.CommandPath(), pageName(s), s.Short)
			}
		}
	} else {
		fmt.Fprintf(&b, "\n```sh\n%s\n```\n", c.UseLine())
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases: `%s`\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.HasExample() {
		lines := strings.Split(c.Example, "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], "  ")
		}
		fmt.Fprintf(&b, "\n## Examples\n\n```sh\n%s\n```\n", strings.Join(lines, "\n"))
	}
	if f := c.LocalNonPersistentFlags(); f.HasAvailableFlags() {
		b.WriteString("\n## Flags\n\n" + flagTable(f))
	}
	b.WriteString("\n[All verbs and the flags that all of them have](README.md)\n")
	return b.String()
}

func topicPage(title, text string) string {
	return fmt.Sprintf("%s# %s\n\n```text\n%s\n```\n", generated, title, text)
}

func flagTable(set *pflag.FlagSet) string {
	var rows []string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
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
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", names, strings.ReplaceAll(text, "|", `\|`)))
	})
	slices.Sort(rows)
	return "| flag | what it does |\n| --- | --- |\n" + strings.Join(rows, "")
}
