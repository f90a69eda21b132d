package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
)

func TestUX1_LogOnScreen(t *testing.T) {
	var out bytes.Buffer
	a := newApp(stdio{&bytes.Buffer{}, &out, &out})
	log := slog.New(&screenLog{Handler: slog.NewTextHandler(a.logs.to(&out), nil), a: a})
	for name, c := range map[string]struct {
		log  func()
		want string
	}{
		"a server": {func() {
			log.With("server", "a").Warn("lost MCP server", "error", errors.New("exit 3"))
		}, "warning: server 'a': lost MCP server: exit 3\n"},
		"the error names the server": {func() {
			log.With("server", "a").Warn("lost MCP server", "error", errors.New("server 'a' is gone"))
		}, "warning: lost MCP server: server 'a' is gone\n"},
		"other values": {func() { log.Error("no room", "run", "run_1", "left", 3) },
			"error: no room (run run_1, left 3)\n"},
		"a group":  {func() { log.WithGroup("g").With("k", "v").Info("done") }, "info: done (g.k v)\n"},
		"one line": {func() { log.Warn("two\nlines") }, "warning: two\\nlines\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a.remarks.Store(true)
			out.Reset()
			c.log()
			if got := out.String(); got != c.want {
				t.Errorf("the remark is %q, not %q", got, c.want)
			}
			a.remarks.Store(false)
			out.Reset()
			c.log()
			if got := out.String(); !bytes.HasPrefix([]byte(got), []byte("time=")) {
				t.Errorf("without the screen, the line is %q", got)
			}
		})
	}
}

// TestUX4_ContextText checks what the status line says of the context.
func TestUX4_ContextText(t *testing.T) {
	for want, c := range map[string][2]int{
		"context 12.4k":       {12_400, 0},
		"context 12.4k 6%":    {12_400, 200_000},
		"context 900 <1%":     {900, 200_000},
		"context 210.0k 105%": {210_000, 200_000}, // a proxy allows more
	} {
		if got := contextText(c[0], c[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
