package tree

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// parsed parses a text. It fails the test if an error has no position.
func parsed(t *testing.T, label string, data []byte) (*Node, []Error) {
	t.Helper()
	s := &Sink{}
	n := Parse(&Source{Label: label}, data, s)
	for _, e := range s.Errs {
		if e.File != label {
			t.Errorf("file %q, want %q", e.File, label)
		}
		if e.Line < 1 || e.Col < 1 {
			t.Errorf("without a place: %+v", e)
		}
		if e.Message == "" {
			t.Errorf("without a message: %+v", e)
		}
	}
	return n, Sorted(s.Errs)
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, label, in, want string }{
		{"numbers_keep_their_digits", "a.yaml", "a: 9007199254740993\nb: 1.50", `{"a":9007199254740993,"b":1.50}`},
		{"alias_and_merge", "a.yaml", "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}", `{"x":{"a":1,"b":2},"y":{"b":3,"a":1}}`},
		{"comments_of_JSON", "a.jsonc", `{"a": "//", /* b */ "c": 1} // d`, `{"a":"//","c":1}`},
		{"surrogate_pair_of_JSON", "a.json", `{"a": "\ud83d\ude00"}`, `{"a":"😀"}`},
		{"only_comments", "a.yaml", "# a\n", ""},
		{"duplicate_key", "a.yaml", "a: 1\nb:\n  c: 1\n  c: 2", "a.yaml:4:3: b.c: duplicate key\n    the first one is at line 3"},
		{"alias_of_itself", "a.yaml", "a: &a [*a]", "a.yaml:1:8: a[0][0]: the alias *a contains itself"},
		{"second_document", "a.yaml", "a: 1\n---\nb: 1", "a.yaml:2:1: a second document\n    a file holds one document: remove the line ---"},
		{"unknown_tag", "a.yaml", "a: !x 1", "a.yaml:1:4: a: unknown tag !x"},
		{"tab", "a.yaml", "a:\n\tb: 1", "a.yaml:2:1: a tab in the indentation\n    indent with spaces"},
		{"control_character", "a.yaml", "a: b\x01", "a.yaml:1:5: control characters are not allowed"},
		{"too_deep", "a.yaml", strings.Repeat("[", 65) + strings.Repeat("]", 65), "a.yaml:1:65: nested deeper than 64 levels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, errs := parsed(t, tt.label, []byte(tt.in))
			got := Errors(errs).Error()
			if n != nil && len(errs) == 0 {
				var b bytes.Buffer
				if err := json.Compact(&b, n.JSON()); err != nil {
					t.Fatal(err)
				}
				got = b.String()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// FuzzParse parses any bytes as a file. Every error has a position. A parsed value stays the same if it is written as
// JSON and parsed again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a: 1\nb: [c, {d: !!float 1e3}]", "x: &x {a: 0x1F}\ny: {<<: [*x], b: ~}",
		`{"a": "\ud83d\ude00\u2028", "b": true, "c": null} // d`, "? [a]\n: b", "a: |\n  b\n\n  c\n", "a: 2026-01-01\n---\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, errs := parsed(t, "f.json", data)
		if n == nil || len(errs) > 0 {
			return
		}
		s := &Sink{}
		var first, second bytes.Buffer
		if !n.WriteJSON(&first, "", s, nil) {
			if len(s.Errs) == 0 {
				t.Error("not written, without an error")
			}
			return
		}
		if !json.Valid(first.Bytes()) {
			t.Fatalf("not JSON: %s", first.Bytes())
		}
		again := Parse(&Source{Label: "again.json"}, first.Bytes(), s)
		if len(s.Errs) > 0 { // a character that YAML refuses
			return
		}
		if again.WriteJSON(&second, "", s, nil); !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("first  %s\nsecond %s", first.Bytes(), second.Bytes())
		}
	})
}
