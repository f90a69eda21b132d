package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// simulated returns an app in a new folder with a configuration, and the buffer of its messages.
func simulated(t *testing.T, text string) (*app, *spoken) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, k := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(k, t.TempDir())
	}
	if err := os.WriteFile("tenon.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &spoken{}
	a := newApp(stdio{strings.NewReader(""), io.Discard, said})
	a.lookupEnv = func(name string) (string, bool) {
		return map[string]string{"TENON_NO_PROBE": "1"}[name], name == "TENON_NO_PROBE"
	}
	a.config, a.trust = "tenon.yaml", true
	return a, said
}

// TestServeAtTheTerminal checks that tenon serve says at a terminal that it works: with the address of the workbench,
// or with a line of the log if it does not listen.
func TestServeAtTheTerminal(t *testing.T) {
	for name, c := range map[string]struct{ file, flag, want, not string }{
		"it listens":          {"version: 1\n", "127.0.0.1:0", "workbench: http", "tenon serve: at work"},
		"serve.listen is off": {"serve: {listen: off}\n", "", "tenon serve: at work", "workbench:"},
		"the flag is off":     {"version: 1\n", "off", "tenon serve: at work", "workbench:"},
	} {
		t.Run(name, func(t *testing.T) {
			a, said := simulated(t, c.file)
			a.errTTY = true
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- a.serve(ctx, &serveFlags{listen: c.flag}, cassette{}, time.Second) }()
			said.await(t, 0, c.want)
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if strings.Contains(said.text.String(), c.not) {
				t.Errorf("it said %s", said.text.String())
			}
		})
	}
}
