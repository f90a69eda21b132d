package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// blocks returns the fenced code blocks of a language in a page of the documentation.
func blocks(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```").FindAllSubmatch(text, -1) {
		all = append(all, string(m[1]))
	}
	return all
}

// typed returns the commands of a console block: the lines that begin with "$ ".
func typed(block string) []string {
	var all []string
	for line := range strings.SplitSeq(block, "\n") {
		if c, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, c)
		}
	}
	return all
}

// commands returns the commands of a block without comments.
func commands(block string) []string {
	var all []string
	for _, line := range strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n") {
		if line, _, _ = strings.Cut(line, "  #"); strings.TrimSpace(line) != "" {
			all = append(all, strings.Join(strings.Fields(line), " "))
		}
	}
	return all
}

// TestQuickstart checks that the commands in the README are enough to get the result of a tool, starting with an empty
// folder and an empty HOME.
func TestQuickstart(t *testing.T) {
	var start []string
	for _, b := range blocks(t, "README.md", "console") {
		if c := typed(b); len(c) > 0 && c[0] == "tenon init" {
			start = c
		}
	}
	if len(start) < 2 {
		t.Fatal("README.md has no block that begins with tenon init")
	}
	const most = 3
	script := "mkdir $WORK/empty\ncd $WORK/empty\n"
	for i, c := range start[:min(most, len(start))] {
		script += "exec " + strings.ReplaceAll(c, `"`, "'") + "\n"
		if strings.HasPrefix(c, "tenon run") {
			script += "stderr 'demo.get_weather .* ok'\nstdout 'London is 15'\n"
			t.Logf("a tool's result after %d commands", i+1)
			start = nil
			break
		}
	}
	if start != nil {
		t.Fatalf("none of the first %d commands asks an agent: %q", most, start[:min(most, len(start))])
	}
	file := filepath.Join(t.TempDir(), "hd-sc-001_readme.txtar")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	p := scripts()
	p.Files, p.UpdateScripts = []string{file}, false
	testscript.Run(t, p)
}

// TestArgumentsPage checks the page about arguments and the help of tools add: the configuration files on the page are
// valid, and the example in the help works.
func TestArgumentsPage(t *testing.T) {
	t.Run("TG-43 the page's files are valid and the help's example runs", func(t *testing.T) {
		t.Setenv("HOME", t.TempDir())
		t.Setenv("XDG_CONFIG_HOME", "")
		status, help, _ := runHere(t, "tools", "add", "--help")
		if status != exitOK || !strings.Contains(help, "NAME:TYPE:DESCRIPTION") {
			t.Errorf("status %d, help:\n%s", status, help)
		}
		_, rest, _ := strings.Cut(help, "Examples:\n")
		rest, _, _ = strings.Cut(rest, "\n\n")
		example := commands(rest)
		if len(example) == 0 {
			t.Fatal("the help has no example")
		}
		script := ""
		for _, c := range example {
			script += "exec " + c + " -c tenon.yaml\n"
		}
		script += "exec tenon tools show get_bank_balance -c tenon.yaml -o json\njson stdout arguments.0.required true\n" +
			"-- tenon.yaml --\nversion: 1\nservers: {bank: {command: tenon, args: [testserver, --stdio]}}\n"
		file := filepath.Join(t.TempDir(), "tg-43_help.txtar")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		p := scripts()
		p.Files, p.UpdateScripts = []string{file}, false
		testscript.Run(t, p)
	})
	for i, text := range blocks(t, "docs/reference/arguments.md", "yaml") {
		t.Run(fmt.Sprintf("TG-43 file %d", i+1), func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			t.Setenv("XDG_CONFIG_HOME", "")
			file := filepath.Join(t.TempDir(), "tenon.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if status, _, stderr := runHere(t, "config", "validate", "-c", file); status != exitOK {
				t.Errorf("status %d: %s\n%s", status, stderr, text)
			}
		})
	}
}
