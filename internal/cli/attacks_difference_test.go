//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// differenceBefore is a trusted project.
const differenceBefore = `version: 1
servers:
  a:
    command: sh
    args: [run.sh]
    transform:
      - set_params: {who: me}
    headers_note: x
policy:
  rules:
    - {when: 'tool.remote_name == "greet"', verdict: allow}
store:
  retention: 30d
`

// TestAttackDifferences changes a trusted project. The next question shows the changes, both in the list of items and
// as changed lines.
func TestAttackDifferences(t *testing.T) {
	before := strings.Replace(differenceBefore, "    headers_note: x\n", "", 1)
	long := strings.Repeat("true || ", 500)
	for name, tt := range map[string]struct {
		from, to string
		want     []string
		absent   []string
	}{
		"SEC-G4_the_condition_of_a_rule": {`tool.remote_name == "greet"`, "true", []string{
			`~ policy.rules[0].verdict, before: allow: calls that match run without a question, if tool.remote_name == "greet"`,
			"~ policy.rules[0].verdict, now:    allow: calls that match run without a question, if true",
			`-    - {when: 'tool.remote_name == "greet"', verdict: allow}`, "+    - {when: 'true', verdict: allow}"}, []string{"set_params"}},
		"SEC-G4_retention": {"retention: 30d", "retention: 1s", []string{"~ store.retention, before: delete sessions that are older than 720h",
			"~ store.retention, now:    delete sessions that are older than 1s", "-  retention: 30d", "+  retention: 1s"}, nil},
		"SEC-G4_set_params": {"who: me", "who: you", []string{`set_params.who, before: send "me" as this argument of every call`, `set_params.who, now:    send "you"`}, nil},
		"SEC-G4_a_comment":  {"version: 1", "version: 1 # \x1bsafe\u202e", []string{"Changed lines of tenon.yaml", "-version: 1\n", `+version: 1 # `}, []string{"\x1b", "\u202e", "Changed:"}},
		"SEC-G4_an_end_of_a_long_condition": {`'tool.remote_name == "greet"'`, "'" + long + "tool.remote_name == \"x\"'", []string{
			"more characters), sha256:"}, []string{long}},
		"SEC-G4_no_secret_in_the_record": {"    args: [run.sh]", "    args: [run.sh]\n    env: {MY_TOKEN: sesame-sesame, X: ghp_0123456789abcdefghijABCDEFGHIJ012345}", []string{"MY_TOKEN: ***"}, []string{"- sesame", "ghp_0123"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newClone(t)
			h.write("tenon.yaml", before)
			h.trust()
			h.write("tenon.yaml", strings.Replace(strings.ReplaceAll(before, "\x1b", ""), tt.from, tt.to, 1))
			if strings.Contains(tt.to, "\x1b") { // YAML refuses the character itself
				h.write("tenon.yaml", strings.Replace(before, tt.from, strings.ReplaceAll(tt.to, "\x1b", ""), 1))
			}
			_, _, stderr := runHere(t, "run", "hi")
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in:\n%s", want, stderr)
				}
			}
			for _, absent := range tt.absent {
				if strings.Contains(stderr, absent) {
					t.Errorf("%q is in:\n%s", absent, stderr)
				}
			}
			runHere(t, "trust", "--trust")
			for _, file := range h.trusted() {
				if b, _ := os.ReadFile(file); strings.Contains(string(b), "ghp_0123") && strings.Contains(string(b), `"texts"`) {
					texts := string(b)[strings.Index(string(b), `"texts"`):]
					if strings.Contains(texts, "ghp_0123") || strings.Contains(texts, "sesame-sesame") {
						t.Errorf("%s has a secret in clear", filepath.Base(file))
					}
				}
			}
			h.unharmed()
		})
	}
}

// TestChangedLines checks that the difference of two texts shows each changed line, up to a limit.
func TestChangedLines(t *testing.T) {
	for name, tt := range map[string]struct{ a, b, want string }{
		"equal":             {"a\nb", "a\nb", ""},
		"one line":          {"a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nx\ne\nf\ng", " b| c|-d|+x| e| f"},
		"first line":        {"a\nb", "x\nb", "-a|+x| b"},
		"a line at the end": {"a", "a\nb", " a|+b"},
		"all":               {"a\nb", "c\nd", "-a|-b|+c|+d"},
		"two places":        {"a\n1\n2\n3\n4\n5\nb", "x\n1\n2\n3\n4\n5\ny", "-a|+x| 1| 2| …| 4| 5|-b|+y"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(changedLines(textOf(tt.a), textOf(tt.b)), "|"); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	a, b := make([]string, 5000), make([]string, 5000)
	for i := range a {
		a[i], b[i] = "a", "b"
	}
	if n := len(changedLines(a, b)); n != 10000 {
		t.Errorf("%d lines", n)
	}
}

// TestLinkedProjects uses one tenon.yaml through links in two folders. The question and the list name both paths.
// Revoking the trust in one folder does not affect the other one.
func TestLinkedProjects(t *testing.T) {
	h := newClone(t)
	h.small()
	h.trust()
	second := h.other("second")
	h.do(os.MkdirAll(second.dir, 0o700))
	h.do(os.Symlink(filepath.Join(h.dir, "tenon.yaml"), filepath.Join(second.dir, "tenon.yaml")))
	h.do(os.WriteFile(filepath.Join(second.dir, "run.sh"), []byte("true\n"), 0o600))
	both := h.real(second.dir) + "/tenon.yaml, a link to " + h.real(filepath.Join(h.dir, "tenon.yaml"))
	for _, args := range [][]string{{"servers", "test", "script"}, {"trust", "show"}} {
		if _, stdout, stderr := runHere(t, args...); !strings.Contains(stdout+stderr, both) {
			t.Errorf("%q is not in: %s%s", both, stdout, stderr)
		}
	}
	runHere(t, "trust", "--trust")
	if _, stdout, _ := runHere(t, "trust", "list"); !strings.Contains(stdout, "(used by a link in "+h.real(second.dir)+")") {
		t.Errorf("the list does not name the folder of the link: %s", stdout)
	}
	if status, _, stderr := runHere(t, "trust", "revoke"); status != 0 || len(h.trusted()) != 1 {
		t.Errorf("status %d, %d records are left: %s", status, len(h.trusted()), stderr)
	}
	t.Chdir(h.dir)
	if _, stdout, _ := runHere(t, "trust", "show"); !strings.Contains(stdout, "trusted since") {
		t.Errorf("the other folder is not trusted any more: %s", stdout)
	}
}
