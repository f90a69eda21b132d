package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pythonInstaller matches a command that fetches packages of PyPI, up to the end of its code or line.
var pythonInstaller = regexp.MustCompile("(?m)(?:^|[\\s`(/])((?:uvx|uv (?:tool|pip|add|run)|pipx|" +
	"pip[0-9.]* (?:install|download|wheel))\\s[^`\n]*)")

// packageOptions are options of uv, pip and pipx whose value is a package, valueOptions those with other values.
var (
	packageOptions = []string{"--from", "--spec", "--with"}
	valueOptions   = []string{"--prerelease", "--find-links", "-f", "--index", "--index-url", "-i", "--extra-index-url",
		"--default-index", "--python", "-p"}
	requirement = regexp.MustCompile(`^["']?(tenon(?:[-_.]+mcp)?)(?:$|[^\w.-])`)
)

// named returns the distributions among ours and the other project's tenon that a command asks for. A command that runs
// a program fetches what its options name, or else its first argument; the words after it are for the program.
func named(line string) (names []string) {
	words := strings.Fields(strings.ReplaceAll(line, "=", " "))
	first := 2 // after uv tool, pip install and the like
	if words[0] == "uvx" {
		first = 1
	}
	runs := words[0] == "uvx" || slices.Contains(words[:min(3, len(words))], "run")
	if words[0] == "uv" && len(words) > 2 && words[1] != "add" && words[1] != "run" {
		first = 3
	}
	for i := first; i < len(words); i++ {
		word, previous := strings.ToLower(words[i]), words[i-1]
		option := slices.Contains(packageOptions, previous)
		if strings.HasPrefix(word, "-") || slices.Contains(valueOptions, previous) {
			continue
		}
		if m := requirement.FindStringSubmatch(word); m != nil {
			names = append(names, strings.NewReplacer("_", "-", ".", "-").Replace(m[1]))
		}
		if runs && (!option || previous != "--with") {
			break
		}
	}
	return names
}

// indexed returns the commands of a text that would install the package tenon, which is another project's, and those
// that ask the index for ours, which is not published.
func indexed(text string) (foreign, ours []string) {
	for _, m := range pythonInstaller.FindAllStringSubmatch(text, -1) {
		names := named(m[1])
		switch {
		case slices.Contains(names, "tenon"):
			foreign = append(foreign, m[1])
		case len(names) > 0 && !strings.Contains(m[1], "--no-index"):
			ours = append(ours, m[1])
		}
	}
	return foreign, ours
}

// TestREL_noIndex checks that no page, and no description of a package, has people install tenon of PyPI, which is
// another project's. Until our wheels are published, the pages have them installed without an index.
func TestREL_noIndex(t *testing.T) {
	if got := wheelNames(t); len(got) != 1 || got[0] != "Name: "+wheelName {
		t.Errorf("wheels have the names %q", got)
	}
	count := 0
	check := func(name string) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		foreign, ours := indexed(string(text))
		for _, line := range foreign {
			t.Errorf("%s: %s installs the package of another project", name, line)
		}
		for _, line := range ours {
			t.Errorf("%s: %s asks an index for wheels that are not published", name, line)
		}
		count += strings.Count(string(text), "--from "+wheelName+" tenon")
	}
	pages, err := filepath.Glob("../../*.md")
	if err != nil || len(pages) < 6 {
		t.Fatal(pages, err)
	}
	for _, dir := range []string{"docs", "deploy", "examples", "packaging", ".github"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) != ".svg" {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range pages {
		check(page)
	}
	if count == 0 {
		t.Error("no page runs the wheel")
	}
}

// wheelNames returns the names in the wheels' metadata, and checks the commands in it.
func wheelNames(t *testing.T) (names []string) {
	t.Helper()
	p := packaging{version: "1.2.3", dist: fakeDist(t), to: t.TempDir()}
	if err := writeWheels(p); err != nil {
		t.Fatal(err)
	}
	wheels, err := filepath.Glob(filepath.Join(p.to, "*.whl"))
	if err != nil || len(wheels) != len(platforms) {
		t.Fatal(wheels, err)
	}
	for _, wheel := range wheels {
		text, err := os.ReadFile(filepath.Join(unpacked(t, wheel), "tenon_mcp-1.2.3.dist-info", "METADATA"))
		if err != nil {
			t.Fatal(err)
		}
		foreign, ours := indexed(string(text))
		if len(foreign) > 0 || len(ours) != 1 {
			t.Errorf("%s: commands for another project %q, for ours %q", filepath.Base(wheel), foreign, ours)
		}
		names = append(names, regexp.MustCompile(`(?m)^Name: .*`).FindString(string(text)))
	}
	return slices.Compact(names)
}

// TestREL_noIndexFinds has commands that install the package of another project, and others.
func TestREL_noIndexFinds(t *testing.T) {
	for _, line := range []string{"uvx tenon demo", "Run `uvx tenon@latest demo`.", "    uvx --prerelease allow tenon",
		"pip install tenon", "python3 -m pip install --pre tenon==1.2.3", "env/bin/pip3 install -q 'tenon>=1'",
		"uv tool install --find-links pypi tenon", "uv tool run tenon demo", "uv pip install Tenon", "uv add tenon",
		"pipx install tenon", "pipx run tenon demo", "pipx run --spec tenon tenon", "uvx --from tenon tenon demo",
		"uvx --from=tenon==0.1.7 tenon", "uv run --with tenon tenon", "pip install tenon-mcp tenon"} {
		if foreign, _ := indexed(line); len(foreign) != 1 {
			t.Errorf("not found: %s", line)
		}
	}
	for _, line := range []string{"uvx --from tenon-mcp tenon demo", "pip install tenon-mcp", "uvx tenon-mcp gateway",
		"pip install tenon_mcp==1", "uv tool install tenon-mcp"} {
		if foreign, ours := indexed(line); len(foreign) > 0 || len(ours) != 1 {
			t.Errorf("%s: %q, %q", line, foreign, ours)
		}
	}
	for _, line := range []string{"uvx mcp-server-git", "tenon servers add git -- uvx mcp-server-git", "npx tenon demo",
		"npx and uvx keep what tenon gives them", "uvx --no-index --find-links pypi --from tenon-mcp tenon demo",
		"uvx, tenon", "pip install -r /tenon/requirements.txt"} {
		if foreign, ours := indexed(line); len(foreign)+len(ours) > 0 {
			t.Errorf("%s: %q, %q", line, foreign, ours)
		}
	}
}
