package host_test

import (
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"os"
	"strings"
	"testing"
)

// TestExamples runs some examples again under the ids of the acceptance tests that they prove, and checks their output.
func TestExamples(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "example_library_test.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string]string{}
	for _, e := range doc.Examples(f) {
		wants[e.Name] = e.Output
	}
	for name, e := range map[string]struct {
		example string
		run     func()
	}{
		"RA-1 a host from a file":          {"Open", ExampleOpen},
		"AI-7 functions of an open host":   {"NewToolset", ExampleNewToolset},
		"AI-35 a definition and discovery": {"Servers_discovered", ExampleServers_discovered},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.TrimSpace(wants[e.example])
			if got := strings.TrimSpace(printed(t, e.run)); want == "" || got != want {
				t.Errorf("it printed\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// printed returns what a function prints to stdout.
func printed(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = stdout }()
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(r) // up to the close below
		text <- string(b)
	}()
	f()
	_ = w.Close()
	return <-text
}
