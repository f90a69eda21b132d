package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon/config/tree"
)

func TestEnvFile(t *testing.T) {
	const big = "A=0123456789abcdef0123456789abcdef\n"
	for _, c := range []struct {
		name, text string
		ambient    bool
		want       map[string]string
		takes      map[string][]string
		bad        int
		unset      string
	}{
		{name: "plain, comments and export", text: "# x\nexport A=1 # one\nB = two\nC=", want: map[string]string{"A": "1", "B": "two", "C": ""}},
		{name: "RP-15 escapes in double quotes", text: `K="-----BEGIN\nab\tc\r\"q\"\\ \$x \d"`,
			want: map[string]string{"K": "-----BEGIN\nab\tc\r\"q\"\\ $x \\d"}},
		{name: "RP-15 single quotes are literal", text: `K='a\n${X}'`, want: map[string]string{"K": `a\n${X}`}},
		{name: "no escapes without quotes", text: `K=C:\new`, want: map[string]string{"K": `C:\new`}},
		{name: "RP-15 references", text: "A=1\nB=${A}2\nC=\"${B}3\"\nD=${X}\nE=${NONE:-dflt}\nF=\"\\${A}\"",
			want:  map[string]string{"A": "1", "B": "12", "C": "123", "D": "env", "E": "dflt", "F": "${A}"},
			takes: map[string][]string{"D": {"X"}, "E": {"NONE"}}},
		{name: "references through another variable", text: "A=${X}\nB=-${A}-", want: map[string]string{"A": "env", "B": "-env-"},
			takes: map[string][]string{"A": {"X"}, "B": {"X"}}},
		{name: "the file comes first", text: "X=own\nA=${X}", want: map[string]string{"X": "own", "A": "own"}},
		{name: "the environment comes first", ambient: true, text: "X=own\nA=${X}", want: map[string]string{"X": "own", "A": "env"},
			takes: map[string][]string{"A": {"X"}}},
		{name: "of itself", text: "X=${X}:more\nX=${X}:again", want: map[string]string{"X": "env:more:again"},
			takes: map[string][]string{"X": {"X"}}},
		{name: "RP-15 not set", text: "A=1\nB=${NONE}\nC=3", want: map[string]string{"A": "1", "C": "3"}, unset: "2 NONE"},
		{name: "dollars of other kinds", text: "A=pa$$word$B\nB=${a.b}\nC=${", want: map[string]string{"A": "pa$$word$B", "B": "${a.b}", "C": "${"}},
		{name: "quotes that do not close", text: "A=1\nB=\"x\\\"\nC='y", want: map[string]string{"A": "1"}, bad: 2},
		{name: "growth is bounded", text: big + strings.Repeat("A=${A}${A}${A}${A}\n", 40)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := parseEnv([]byte(c.text), c.ambient, env("X", "env"))
			total := 0
			for _, v := range f.values {
				total += len(v)
			}
			if total > tree.MaxBytes {
				t.Errorf("%d bytes", total)
			}
			if c.name == "growth is bounded" {
				if f.bad == 0 {
					t.Error("nothing was refused")
				}
				return
			}
			if diff := cmp.Diff(c.want, f.values); diff != "" {
				t.Error(diff)
			}
			if c.takes == nil {
				c.takes = map[string][]string{}
			}
			if diff := cmp.Diff(c.takes, f.takes); diff != "" {
				t.Error(diff)
			}
			var unset string
			for _, u := range f.unset {
				unset = strings.TrimSpace(string(rune('0'+u.line)) + " " + u.name)
			}
			if f.bad != c.bad || unset != c.unset {
				t.Errorf("bad line %d, unset %q", f.bad, unset)
			}
		})
	}
}

// TestEnvFileTakes checks that EnvFileTakes lists all variables that an env file uses, also indirectly, because a
// person who agrees to the project must see them.
func TestEnvFileTakes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".env", "ALIAS=${CLOUD_KEY}\n")
	write("a.env", "K=${ALIAS}\n")
	write("tenon.yaml", "servers: {a: {command: x, env_file: a.env, env: {E: \"${ALIAS}\"}}}\n")
	c, err := Load(context.Background(), Options{Dir: dir, Home: dir, LookupEnv: env("CLOUD_KEY", "v")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ALIAS", "CLOUD_KEY"}
	if diff := cmp.Diff(want, c.EnvFileTakes("a")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, c.Variables("servers.a.env.E")); diff != "" {
		t.Error(diff)
	}
	s, err := c.Server(context.Background(), "a")
	if err != nil || s.Env["K"] != "v" || s.Env["E"] != "v" {
		t.Errorf("%v, %v", s.Env, err)
	}
	write("a.env", "K=${NONE}\n")
	_, err = Load(context.Background(), Options{Dir: dir, Home: dir, LookupEnv: env("CLOUD_KEY", "v")})
	if err == nil || !strings.Contains(err.Error(), "a.env: line 1: environment variable 'NONE' not found") {
		t.Errorf("error %v", err)
	}
}

func FuzzEnvFile(f *testing.F) {
	f.Add([]byte("A=\"x\\n${B:-c}\"\nB='y'\nexport C=${A}${A}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := parseEnv(data, len(data)%2 == 0, env("B", "v"))
		for name := range got.values {
			if !tree.IsVariable(name) {
				t.Errorf("name %q", name)
			}
		}
	})
}

func TestRP15VariablesInConfig(t *testing.T) {
	text := `
secrets: {s: {env: TOKEN}}
servers:
  a:
    command: x
    config:
      allowed_directories: ["${DATA}/in", /tmp]
      token: "${secret:s}"
      price: $$5
      nested: {n: 9007199254740993, deep: ["${DATA}", "${NONE:-d} ${secret:s}"]}
`
	ctx := context.Background()
	o := Options{Dir: t.TempDir(), LookupEnv: env("DATA", "/d", "TOKEN", "t0k")}
	c, err := Parse("tenon.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.Servers["a"].Settings["token"]); got != `"${secret:s}"` {
		t.Errorf("before it is used: %s", got)
	}
	s, err := c.Server(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for k, v := range s.Settings {
		got[k] = string(v)
	}
	want := map[string]string{"allowed_directories": `["/d/in","/tmp"]`, "token": `"t0k"`, "price": `"$5"`,
		"nested": `{"n":9007199254740993,"deep":["/d","d t0k"]}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	masked := false
	for _, secret := range s.SecretValues() {
		masked = masked || secret.Reveal() == "t0k"
	}
	if !masked {
		t.Error("the secret is not masked")
	}
	for bad, want := range map[string]string{
		"{a: {b: [x, \"${NOT_SET}\"]}}":     "servers.a.config.a.b[1]: environment variable 'NOT_SET' not found",
		"{a: \"${secret:nobody}\"}":         "servers.a.config.a: no entry 'nobody' in secrets",
		"{a: ghp_0123456789abcdef01234567}": "",
	} {
		c, err := Parse("tenon.yaml", []byte("servers: {a: {command: x, config: "+bad+"}}"), o)
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", bad, err)
		case want == "" && (err != nil || len(c.Warnings) != 1 || c.Warnings[0].Path != "servers.a.config.a"):
			t.Errorf("%s: %v, %v", bad, err, c)
		}
	}
}
