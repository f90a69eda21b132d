package record_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/record"
)

// TestReplaySecretArguments checks that calls whose arguments contain configured secrets are replayed: the recording
// has masks in their places, also for numbers, and a replay that has not read the secrets yet reads them.
func TestReplaySecretArguments(t *testing.T) {
	const pin = "4711089"
	secrets := func(r *tenon.Redactor) {
		r.Add(tenon.NewSecret(key))
		r.Add(tenon.NewSecret(pin))
	}
	for name, args := range map[string]string{
		"a text":                  `{"password":"s3cret/key+1"}`,
		"a part of a text":        `{"header":"Bearer s3cret/key+1, or not"}`,
		"a number":                `{"pin":4711089}`,
		"a part of a number":      `{"pin":-14711089.5,"n":1}`,
		"numbers in a list":       `{"pins":[1,4711089,47]}`,
		"a text with backslashes": `{"a":"\\\"4711089\\","b":4711089}`,
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.ReplaceAll(args, "s3cret/key+1", strings.ReplaceAll(key, `"`, `\"`))
			dir := t.TempDir()
			redactor := new(tenon.Redactor)
			secrets(redactor)
			rec, err := record.NewRecorder(record.Config{Dir: dir, Redactor: redactor})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := call(rec.Toolset("t", &shop{}), "a", args); err != nil {
				t.Fatal(err)
			}
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(filepath.Join(dir, "mcp", "t", "0001.json"))
			if err != nil || bytes.Contains(file, []byte(pin)) || bytes.Contains(file, []byte("cret/key")) {
				t.Fatalf("%v\n%s", err, file)
			}
			var later tenon.Redactor
			read := 0
			p, err := record.NewPlayer(record.Config{Dir: dir, Redactor: &later, Secrets: func() {
				read++
				secrets(&later)
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := call(p.Toolset("t"), "a", args); err != nil {
				t.Error(err)
			}
			if err := p.Close(); err != nil || read != 1 {
				t.Errorf("%v; the secrets were read %d times", err, read)
			}
			_, err = call(play(t, dir).Toolset("t"), "a", args)
			if tenon.ErrorCode(err) != tenon.CodeConflict || !strings.Contains(err.Error(), "where the recording has a masked secret") {
				t.Errorf("without the secret: %v", err)
			}
		})
	}
}

// TestReplayUnmaskedRecording checks that a recording that has a secret, because the recording process did not know it,
// matches a request in which it is masked.
func TestReplayUnmaskedRecording(t *testing.T) {
	dir := t.TempDir()
	rec, err := record.NewRecorder(record.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(rec.Toolset("t", &shop{}), "a", `{"n":"the-secret-value"}`); err != nil {
		t.Fatal(err)
	}
	var known tenon.Redactor
	known.Add(tenon.NewSecret("the-secret-value"))
	p, err := record.NewPlayer(record.Config{Dir: dir, Redactor: &known})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(p.Toolset("t"), "a", `{"n":"the-secret-value"}`); err != nil {
		t.Error(err)
	}
}

// TestRecorderFolderGone checks that a folder that is removed or replaced during a recording is reported at the next
// exchange, once, and by Close, that nothing is written after that, and that requests are answered.
func TestRecorderFolderGone(t *testing.T) {
	for name, tt := range map[string]struct {
		removed string // path in the cassette
		again   bool   // an empty folder is made in its place
		want    string
	}{
		"the cassette":         {".", false, "was removed or replaced during the recording"},
		"replaced":             {".", true, "was removed or replaced during the recording"},
		"the servers":          {"mcp", false, "was removed or replaced during the recording"},
		"one server":           {"mcp/t", false, "was removed or replaced during the recording"},
		"only the manifest":    {"cassette.json", false, "was removed or replaced during the recording"},
		"the folder of models": {"model", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cassette")
			var logged bytes.Buffer
			rec, err := record.NewRecorder(record.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			if err != nil {
				t.Fatal(err)
			}
			ts := rec.Toolset("t", &shop{})
			if _, err := call(ts, "a", "{}"); err != nil {
				t.Fatal(err)
			}
			gone := filepath.Join(dir, filepath.FromSlash(tt.removed))
			if err := os.RemoveAll(gone); err != nil {
				t.Fatal(err)
			}
			if tt.again {
				if err := os.Mkdir(gone, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				if _, err := call(ts, "a", "{}"); err != nil {
					t.Error(err)
				}
			}
			err = rec.Close()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Close returns %v, which does not contain %q", err, tt.want)
			}
			if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
				t.Errorf("%d warnings: %s", n, &logged)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*.json")); len(left) > 1 {
				t.Errorf("%s were written after that", left)
			}
		})
	}
}

// TestRecorderFolderGoneAtTheEnd checks that Close reports a folder that was removed after the last exchange.
func TestRecorderFolderGoneAtTheEnd(t *testing.T) {
	dir, rec := newCassette(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("%v", err)
	}
}
