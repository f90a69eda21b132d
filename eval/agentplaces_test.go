package eval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/eval"
)

// TestAgentPlaces checks that mistakes in the test cases of an agent.yaml have the positions of the test cases.
func TestAgentPlaces(t *testing.T) {
	const head = "name: a\nmodel: {provider: ollama, name: m}\ninstructions: {inline: hi}\ntest_cases:\n" +
		"  - {name: x, input: hi}\n"
	for name, tt := range map[string]struct{ last, want string }{
		"RP-15_same name":    {"  - {name: x, input: hi}\n", "test_cases[1].name"},
		"RP-15_no file":      {"  - {name: y, input: hi, files: [{path: none.txt}]}\n", "test_cases[1].files[0]"},
		"RP-15_outside file": {"  - {name: y, input: hi, files: [{path: ../none.txt}]}\n", "test_cases[1].files[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "agent.yaml")
			if err := os.WriteFile(path, []byte(head+tt.last), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := eval.Load(path)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "agent.yaml:6:") {
				t.Errorf("%v", err)
			}
		})
	}
}
