package cli

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"sync"
	"testing"
)

// answered is an output that calls a function at the first answer.
type answered struct {
	once sync.Once
	do   func()
}

func (a *answered) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("serverInfo")) {
		a.once.Do(a.do)
	}
	return len(b), nil
}

// TestGW_StdinStaysOpen checks that a gateway ends with its context while the client keeps stdin open, as after
// SIGTERM. Otherwise the test hangs.
func TestGW_StdinStaysOpen(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, ".state"))
	t.Chdir(home)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, client := io.Pipe()
	defer client.Close()
	go func() {
		_, _ = io.WriteString(client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
			`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n")
	}()
	var errs bytes.Buffer
	if status := run(ctx, []string{"gateway"}, stdio{in, &answered{do: cancel}, &errs}); ctx.Err() == nil {
		t.Errorf("status %d: %s", status, errs.String())
	}
}
