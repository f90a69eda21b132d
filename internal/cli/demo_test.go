package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// TestUX10_DemoWithoutConfiguration checks that the built-in script has tools where nothing is configured, and that
// tenon's own server is not added to a configuration of a person.
func TestUX10_DemoWithoutConfiguration(t *testing.T) {
	question := demoQuestions[0]
	for name, tt := range map[string]struct {
		o      opening
		file   string
		serves bool
		want   bool
	}{
		"a known question":        {o: opening{asks: question, connect: true}, want: true},
		"a conversation":          {o: opening{asks: "chat", talks: true, connect: true}, want: true},
		"the workbench":           {o: opening{connect: true, lasting: true}, serves: true, want: true},
		"another question":        {o: opening{asks: "What else?", connect: true}},
		"a model is named":        {o: opening{asks: question, connect: true, model: "openai/gpt-5"}},
		"a service":               {o: opening{connect: true, lasting: true}},
		"a file without servers":  {o: opening{asks: question, connect: true}, file: "version: 1\n"},
		"the request is printed":  {o: opening{asks: question}},
		"a serve with its model":  {o: opening{connect: true, lasting: true, model: "openai/gpt-5"}, serves: true},
		"a file, and a workbench": {o: opening{connect: true, lasting: true}, file: "version: 1\n", serves: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, k := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
				t.Setenv(k, t.TempDir())
			}
			if tt.file != "" {
				if err := os.WriteFile("tenon.yaml", []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := newApp(stdio{strings.NewReader(""), io.Discard, &bytes.Buffer{}})
			a.lookupEnv = func(name string) (string, bool) { return "1", name == "TENON_NO_PROBE" }
			a.serving, a.errTTY, a.trust = tt.o.lasting, tt.serves, true
			cfg, err := a.hostConfig(t.Context(), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := cfg.Config.Servers["demo"]; got != tt.want {
				t.Errorf("the demo server is there: %v, want %v", got, tt.want)
			}
		})
	}
}
