package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/config"
)

// TestUX4_StderrIsAFile checks that the chat takes the whole screen although stderr is a file, and what the file gets:
// the log records as they always are in files, and nothing that is for the person.
func TestUX4_StderrIsAFile(t *testing.T) {
	for format, want := range map[string]string{
		"text": ` level=WARN msg="lost MCP server" server=weather error="exit status 3"`,
		"json": `,"level":"WARN","msg":"lost MCP server","server":"weather","error":"exit status 3"}`,
	} {
		t.Run(format, func(t *testing.T) {
			c := openChat(t, 80, 24, screenSteps)
			name := filepath.Join(t.TempDir(), "errors.txt")
			file, err := os.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close() // it is read by its name
			a := newApp(stdio{c.terminal, c.terminal, file})
			a.lookupEnv = func(name string) (string, bool) {
				return map[string]string{"TERM": "xterm-256color", "XDG_STATE_HOME": c.state}[name], name == "TERM" ||
					name == "XDG_STATE_HOME"
			}
			if !a.fullScreen(false) {
				t.Fatal("the terminal is not used as a whole")
			}
			cfg := &config.Config{}
			cfg.Telemetry.LogFormat = format
			log := a.logger(cfg)
			go func() { c.status <- a.chatOnScreen(t.Context(), c.host, &asking{}) }()
			c.awaits("Ask something.")
			c.types("two lines\r")
			c.awaits("The second answer.")
			log.Warn("lost MCP server", slog.String("server", "weather"), slog.String("error", "exit status 3"))
			c.types("/cost\r")
			if screen := c.awaits("tokens in this conversation"); strings.Contains(screen, "lost MCP server") {
				t.Errorf("the record is on the screen:\n%s", screen)
			}
			c.leaves()
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(got), want) || strings.Count(string(got), "\n") != 1 {
				t.Errorf("the file has %q, and should have one line with %q", got, want)
			}
			for range 3000 {
				if strings.Contains(strings.Join(c.screen.Lines(), "\n"), "continue with: tenon chat -s") {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("the terminal does not say how to continue:\n%s", strings.Join(c.screen.Lines(), "\n"))
		})
	}
}
