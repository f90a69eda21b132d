package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBreadth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "日本語": 6, "e\u0301": 1, "✅ ok": 5, "👩\u200d💻": 4, "한국": 4, "①…→": 3, "Ａ": 2} {
		if got := breadth(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
	for _, tc := range []struct {
		text string
		n    int
		want string
	}{{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"abcdef", 4, "abc…"}, {"abc", 0, "…"}, {"", 0, ""}} {
		if got := shorten(tc.text, tc.n); got != tc.want || tc.n > 0 && breadth(got) > tc.n {
			t.Errorf("%q cut to %d columns is %q, want %q", tc.text, tc.n, got, tc.want)
		}
	}
}

// TestTableOfWideCharacters checks that columns after a cell with wide characters are aligned.
func TestTableOfWideCharacters(t *testing.T) {
	var out bytes.Buffer
	a := newApp(stdio{strings.NewReader(""), &out, &out})
	a.outTTY = true
	if err := a.table([]string{"row", "city", "total"}, [][]string{{"Row0", "London", "4.5"}, {"Row1", "日本語の町", "4"}, {"Row2", "", ""}}); err != nil {
		t.Fatal(err)
	}
	want := "ROW   CITY        TOTAL\nRow0  London      4.5\nRow1  日本語の町  4\nRow2\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
