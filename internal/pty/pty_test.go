package pty

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T) *Session {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	s, err := Start(Config{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, Patience: 30 * time.Second})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSession(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		name, command string
		answers       []Answer
		want          string
		status        int
	}{
		{"output", "echo one; echo two >&2", nil, "one\ntwo", 0},
		{"a terminal", "test -t 0 && test -t 1 && test -t 2 && echo yes", nil, "yes", 0},
		{"exit status", "(exit 7)", nil, "", 7},
		{"the last exit status", "echo $?", nil, "7", 0},
		{"variables stay", "X=5", nil, "", 0},
		{"and are read", "echo $X", nil, "5", 0},
		{"an answer", `read -p "name: " name; echo "got $name"`, []Answer{{"name: ", "Ann"}}, "name: Ann\ngot Ann", 0},
		{"several lines", "cat <<'E'\na\nb\nE", nil, "a\nb", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, status, err := s.Run(c.command, c.answers...)
			if err != nil || status != c.status {
				t.Fatalf("status %d, %v: %q", status, err, out)
			}
			if d := cmp.Diff(c.want, strings.Join(Text(out), "\n")); d != "" {
				t.Error(d)
			}
		})
	}
	t.Run("background", func(t *testing.T) {
		var got []string
		err := s.Background("sh -c 'echo ready; exec sleep 60'", func(line string) bool {
			got = append(got, line)
			return line == "ready"
		})
		if err != nil {
			t.Errorf("%v: %q", err, got)
		}
	})
}

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"plain":             {"a\r\nb\r\n", "a\nb"},
		"colours":           {"\x1b[1;32mok\x1b[0m done", "ok done"},
		"a line over again": {"waiting\r\x1b[Kdone\r\n", "done"},
		"a shorter line":    {"abc\rx", "xbc"},
		"cursor up":         {"one\r\ntwo\r\x1b[1A\x1b[Jthree\r\n", "three"},
		"a title":           {"\x1b]0;title\x07text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, strings.Join(Text(c.output), "\n")); d != "" {
				t.Error(d)
			}
		})
	}
}
