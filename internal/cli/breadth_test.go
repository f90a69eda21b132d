package cli

import (
	"bytes"
	"slices"
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

// TestNarrowTables checks that rows fit the terminal: long names and many columns are shortened, ids last, and nothing
// is shortened where it fits.
func TestNarrowTables(t *testing.T) {
	id := "run_06h0a7dmf9fgrdjxv13q"
	for name, tt := range map[string]struct {
		width int
		row   []string
		want  []string // parts of the line
	}{
		"it fits":             {100, []string{id, "demo.get_weather", "allow", "some text"}, []string{id + "  demo.get_weather  allow  some text"}},
		"the last is long":    {60, []string{id, "tool", "allow", strings.Repeat("xxxxxx ", 40)}, []string{id + "  tool  allow  xxxxxx", "…"}},
		"a long name":         {80, []string{"/s:" + strings.Repeat("name", 2000), "s", "a, b", "what it does"}, []string{"/s:namename", "…  s", "a, b"}},
		"a long second":       {60, []string{id, strings.Repeat("t", 90), "allow", "text"}, []string{id + "  tttt", "…  allow", "text"}},
		"many columns":        {80, []string{id, "1.0", "demo.get_weather", "allow", "policy", "result", "1ms", `{"location":"London"}`}, []string{id + "  1.0", "allow", `{"loc`}},
		"less than all needs": {20, []string{id, "completed", "stop", "just now", "a title"}, []string{"run_06h…"}},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, table := range map[string]func(*app) func([]string, [][]string) error{
				"shortened": func(a *app) func([]string, [][]string) error { return a.table },
				"wrapped":   func(a *app) func([]string, [][]string) error { return a.wrapped },
			} {
				var out bytes.Buffer
				a := newApp(stdio{strings.NewReader(""), &out, &bytes.Buffer{}})
				a.outTTY, a.outColor, a.columns = true, false, tt.width
				header := strings.Fields(strings.Repeat("h ", len(tt.row)))
				if err := table(a)(header, [][]string{slices.Clone(tt.row)}); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(out.String()) {
					if n := breadth(strings.TrimSuffix(line, "\n")); n > max(tt.width-1, 8*len(tt.row)+2*(len(tt.row)-1)) {
						t.Errorf("%s: %d columns: %q", kind, n, line)
					}
				}
				for _, part := range tt.want {
					if kind == "shortened" && !strings.Contains(out.String(), part) {
						t.Errorf("%s: no %q in\n%s", kind, part, &out)
					}
				}
			}
		})
	}
}
