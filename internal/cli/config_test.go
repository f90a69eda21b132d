package cli

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// runHere runs a command line within the process of the test.
func runHere(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, stdio{strings.NewReader(""), &out, &errs})
	return status, out.String(), errs.String()
}

func TestConfigValidate(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Run("KN-16_contacts_nobody", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var dials atomic.Int32
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				dials.Add(1)
				_ = c.Close()
			}
		}()
		file := filepath.Join(t.TempDir(), "closed.yaml")
		text := "version: 1\nservers:\n  gone: {url: \"http://" + listener.Addr().String() + "/mcp\"}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := runHere(t, "config", "validate", "-c", file); status != exitOK {
			t.Errorf("validate: status %d: %s", status, stderr)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
		if n := dials.Load(); n != 0 {
			t.Errorf("validate made %d connections", n)
		}
		if status, _, stderr := runHere(t, "config", "validate", "-c", file, "--connect"); status != exitUnreachable {
			t.Errorf("validate --connect: status %d, want %d: %s", status, exitUnreachable, stderr)
		}
	})
}
