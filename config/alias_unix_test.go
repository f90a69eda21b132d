//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// TestSameProgram checks that different spellings of the path of a program are the same target.
func TestSameProgram(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(at("a"), 0o700), os.WriteFile(at("a/bank"), []byte("#!/bin/sh"), 0o700), os.Symlink(at("a/bank"), at("other")),
		os.Link(at("a/bank"), at("hard")), os.Symlink(at("a"), at("b")), os.WriteFile(at("else"), nil, 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", at("a"))
	for name, tt := range map[string]struct {
		command, cwd string
		want         bool
	}{
		"the same":                       {at("a/bank"), "", true},
		"SEC-F1_a relative path":         {"./bank", at("a"), true},
		"SEC-F1_a relative path above":   {"../a/bank", at("b"), true},
		"SEC-F1_a link":                  {at("other"), "", true},
		"SEC-F1_a hard link":             {at("hard"), "", true},
		"SEC-F1_a link of the folder":    {at("b/bank"), "", true},
		"SEC-F1_dots":                    {dir + "/./a/../a//bank", "", true},
		"SEC-F1_by PATH":                 {"bank", "", true},
		"SEC-F1_a relative link":         {"./other", dir, true},
		"another program":                {at("else"), "", false},
		"a program that does not exist":  {at("none"), "", false},
		"a relative path somewhere else": {"./else", dir, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := servers.Config{Command: at("a/bank"), Args: []string{"x"}}, servers.Config{Command: tt.command, Cwd: tt.cwd}
			if got := sameTarget(a, b); got != tt.want || sameTarget(b, a) != got {
				t.Errorf("%v, want %v both ways", got, tt.want)
			}
		})
	}
}

// TestSameScript checks that different spellings of the path of an interpreter's script are the same target.
func TestSameScript(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(at("d"), 0o700), os.Symlink(at("d"), at("l")), os.Mkdir(at("p"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"d/x.py": "", "d/y.py": "", "d/bare": "print()", "d/c.yaml": "a: 1", "d/data.db": "x", "p/x.py": ""} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(at("d/x.py"), at("p/other.py")), os.Link(at("d/x.py"), at("p/hard.txt"))); err != nil {
		t.Fatal(err)
	}
	script := servers.Config{Command: "python3", Args: []string{at("d/x.py")}}
	for name, tt := range map[string]struct {
		user, project servers.Config
		want          bool
	}{
		"the same":                        {script, servers.Config{Command: "python3", Args: []string{at("d/x.py")}}, true},
		"SEC-G7_two slashes":              {script, servers.Config{Command: "python3", Args: []string{dir + "/d//x.py"}}, true},
		"SEC-G7_a dot":                    {script, servers.Config{Command: "python3", Args: []string{dir + "/d/./x.py"}}, true},
		"SEC-G7_two dots":                 {script, servers.Config{Command: "python3", Args: []string{dir + "/d/../d/x.py"}}, true},
		"SEC-G7_a relative path":          {script, servers.Config{Command: "python3", Args: []string{"../d/x.py"}, Cwd: at("p")}, true},
		"SEC-G7_a working directory":      {script, servers.Config{Command: "python3", Args: []string{"x.py"}, Cwd: at("d")}, true},
		"SEC-G7_a link":                   {script, servers.Config{Command: "python3", Args: []string{at("p/other.py")}}, true},
		"SEC-G7_a hard link":              {script, servers.Config{Command: "python3", Args: []string{at("p/hard.txt")}}, true},
		"SEC-G7_a link of the folder":     {script, servers.Config{Command: "python3", Args: []string{at("l/x.py")}}, true},
		"SEC-G7_an option before":         {script, servers.Config{Command: "python3", Args: []string{"-X", "dev", at("d/x.py")}}, true},
		"SEC-G7_a file as an option":      {script, servers.Config{Command: "python3", Args: []string{"-X", at("d/data.db"), at("d/x.py")}}, true},
		"SEC-G7_no ending, an option":     {servers.Config{Command: "python3", Args: []string{at("d/bare")}}, servers.Config{Command: "python3", Args: []string{"-X", at("d/data.db"), at("d/bare")}}, true},
		"SEC-G7_another interpreter":      {script, servers.Config{Command: "/usr/bin/python3.12", Args: []string{at("l/x.py")}}, true},
		"SEC-G7_behind env":               {script, servers.Config{Command: "env", Args: []string{"A=1", "python3", at("l/x.py")}}, true},
		"SEC-G7_in a line of a shell":     {script, servers.Config{Command: "sh", Args: []string{"-c", "exec python3 '" + at("l/x.py") + "'"}}, true},
		"SEC-G7_the script alone":         {script, servers.Config{Command: at("l/x.py")}, true},
		"SEC-G7_as the value of a flag":   {script, servers.Config{Command: "node", Args: []string{"--import=" + at("l/x.py")}}, true},
		"SEC-G7_a module, an option":      {servers.Config{Command: "python3", Args: []string{"-m", "bank"}}, servers.Config{Command: "python3", Args: []string{"-X", "dev", "-m", "bank"}}, true},
		"SEC-G7_a package, an option":     {servers.Config{Command: "npx", Args: []string{"-y", "server-x"}}, servers.Config{Command: "npx", Args: []string{"--cache", "/tmp", "@s/server-x@2"}}, true},
		"SEC-G7_a folder, two slashes":    {servers.Config{Command: "node", Args: []string{at("d")}}, servers.Config{Command: "node", Args: []string{dir + "//d/"}}, true},
		"another script":                  {script, servers.Config{Command: "python3", Args: []string{at("d/y.py")}}, false},
		"a script of the same name":       {script, servers.Config{Command: "python3", Args: []string{at("p/x.py")}}, false},
		"settings that both read":         {servers.Config{Command: "python3", Args: []string{at("d/x.py"), at("d/c.yaml")}}, servers.Config{Command: "python3", Args: []string{at("d/y.py"), at("d/c.yaml")}}, false},
		"data that both read":             {servers.Config{Command: "python3", Args: []string{at("d/x.py"), at("d/data.db")}}, servers.Config{Command: "python3", Args: []string{at("d/y.py"), at("d/data.db")}}, false},
		"an argument of another program":  {script, servers.Config{Command: "checker", Args: []string{at("d/x.py")}}, false},
		"a script that is not there":      {script, servers.Config{Command: "python3", Args: []string{at("d/none.py")}}, false},
		"another package, the same value": {servers.Config{Command: "npx", Args: []string{"server-x", "/data"}}, servers.Config{Command: "npx", Args: []string{"server-y", "/data"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sameTarget(tt.user, tt.project); got != tt.want || sameTarget(tt.project, tt.user) != got {
				t.Errorf("%v, want %v both ways", got, tt.want)
			}
		})
	}
}

// TestRulesOfSameScript checks that the user's rules and excludes apply to a script under every spelling of its path,
// and that policy explain shows them.
func TestRulesOfSameScript(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.WriteFile(filepath.Join(dir, "d/x.py"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, entry := range map[string]string{
		"SEC-G7_two slashes":         "args: [" + dir + "/d//x.py]",
		"SEC-G7_an option":           "args: [-X, dev, " + dir + "/d/x.py]",
		"SEC-G7_a working directory": "args: [x.py], cwd: " + dir + "/d",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := layers(t, map[string]string{
				"USER":    "servers:\n  c: {command: python3, args: [" + dir + "/d/x.py], policy: {approval: always}, exclude: [danger]}\n",
				"PROJECT": "servers:\n  p: {command: python3, " + entry + ", policy: {approval: never}}\n"})
			if err != nil {
				t.Fatal(err)
			}
			if e := c.Narrowed("p", c.Servers["p"]); len(e.Filters) != 1 || len(e.Filters[0].Exclude) != 1 {
				t.Errorf("filters %+v", e.Filters)
			}
			layers, err := c.Rules()
			if err != nil {
				t.Fatal(err)
			}
			o := layers.Judge(&policy.Facts{Tool: &tenon.Tool{Server: "p", Remote: "t", Name: "t"}, Identity: c.ServerID("p")})
			if o.Verdict != tenon.Ask || o.Layer != "user" {
				t.Errorf("%+v", o)
			}
			if got := c.Explain("p", "t", ""); got[0].Key != "approval" || got[0].Value != "always" || got[0].From != "servers.c.policy.approval" {
				t.Errorf("explained as %+v", got[0])
			}
		})
	}
}
