package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUX2_Render(t *testing.T) {
	tests := map[string]struct {
		text  string
		width int
		want  string
	}{
		"words":     {"one two three four", 9, "one two\nthree\nfour"},
		"long word": {"abcdefghijkl x", 8, "abcdefgh\nijkl x"},
		"wide":      {"東京東京東京", 8, "東京東京\n東京"},
		"combining": {"e\u0301e\u0301e\u0301 x", 20, "e\u0301e\u0301e\u0301 x"},
		"heading":   {"# A title\ntext\n## B", 20, "A title\n\ntext\n\nB"},
		"emphasis":  {"**a** *b* ***c*** __d__ _e_ ~~f~~ snake_case_name 2 * 3 * 4", 80, "a b c d e f snake_case_name 2 * 3 * 4"},
		"unclosed":  {"**a *b `c [d](e", 20, "**a *b `c [d](e"},
		"escapes":   {`\*a\* &lt;b&gt; &unknown;`, 40, "*a* <b> &unknown;"},
		"code":      {"a `b **c**` ``d ` e``", 40, "a b **c** d ` e"},
		"link":      {"[text](https://example.org/a_b) <https://example.org> https://example.org/x.", 80, "text (https://example.org/a_b) https://example.org https://example.org/x."},
		"picture":   {"![a cat](https://example.org/cat.png)", 60, "[image: a cat] (https://example.org/cat.png)"},
		"html":      {"<b>x</b> <script>alert(1)</script>", 60, "<b>x</b> <script>alert(1)</script>"},
		"list":      {"- one\n- two\n  more\n  - nested\n- [ ] open\n- [x] done", 40, "• one\n• two more\n  • nested\n☐ open\n☑ done"},
		"numbers":   {"9. nine\n10. ten\n    - in ten\n\ntext", 40, " 9. nine\n10. ten\n    • in ten\n\ntext"},
		"quote":     {"> one\n> two\n> - three", 40, "│ one two\n│ \n│ • three"},
		"fence":     {"```go\nfunc f() {\n\treturn 1 // x\n}\n```\nafter", 40, "  func f() {\n      return 1 // x\n  }\n\nafter"},
		"open code": {"```\na\n\nb", 40, "  a\n  \n  b"},
		"long code": {"```\nabcdefghijkl\n```", 8, "  abcdef\n  ghijkl"},
		"rule":      {"a\n\n---\n\nb", 10, "a\n\n──────────\n\nb"},
		"hard":      {"a  \nb\\\nc\nd", 10, "a\nb\nc d"},
		"table":     {"| a | bb |\n|---|---:|\n| 1 | 2 |\n| `x|y` | **z** |", 40, "a    bb\n───  ──\n1     2\nx|y   z"},
		"narrow":    {"| name | remark |\n|---|---|\n| one | some long remark |", 18, "name  remark\n────  ────────────\none   some long\n      remark"},
		"records":   {"| one | two | three |\n|---|---|---|\n| aaaaaaaaaa | bbbbbbbbbb | cccccccccc |", 15, "one: aaaaaaaaaa\ntwo: bbbbbbbbbb\nthree:\ncccccccccc"},
		"no table":  {"a | b\nc | d", 20, "a | b c | d"},
		"hidden":    {"a\x1b[2Jb\u202ec\u200bd", 60, `a\u{1b}[2Jb\u{202e}c\u{200b}d`},
		"crlf":      {"a\r\n\r\nb\rc", 20, "a\n\nb c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, o := range []Options{{Width: tt.width, Plain: true}, {Width: tt.width, Links: true}} {
				lines := Render(tt.text, o)
				for i, l := range lines {
					lines[i] = strings.TrimRight(Strip(l), "")
					if Width(lines[i]) > tt.width {
						t.Errorf("line %q is wider than %d", lines[i], tt.width)
					}
				}
				if d := cmp.Diff(tt.want, strings.Join(lines, "\n")); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// TestUX2_Styles checks that styles end with their line, and that only web addresses become links.
func TestUX2_Styles(t *testing.T) {
	got := Render("**bold words** [a](https://example.org) [b](javascript:x) [c](https://example.org/\u202e)", Options{Width: 9, Links: true})
	want := []string{"\x1b[1mbold\x1b[0m", "\x1b[1mwords\x1b[0m \x1b]8;;https://example.org\x1b\\\x1b[4ma\x1b[0m\x1b]8;;\x1b\\"}
	if d := cmp.Diff(want, got[:2]); d != "" {
		t.Error(d)
	}
	all := strings.Join(got, "\n")
	if strings.Count(all, "\x1b]8;;h") != 1 || strings.Contains(all, "\x1b]8;;j") {
		t.Errorf("links: %q", all)
	}
	for _, l := range got {
		if starts, ends := strings.Count(l, "\x1b[")-strings.Count(l, "\x1b[0m"), strings.Count(l, "\x1b[0m"); starts != ends {
			t.Errorf("a style does not end: %q", l)
		}
	}
}

// TestUX2_Stable checks that the part of a text that is reported as stable is drawn the same, whatever text follows.
func TestUX2_Stable(t *testing.T) {
	text := "# T\n\npara one\nmore\n\n- a\n\n  b\n\n- c\n\ntext\n\n```go\nx\n\ny\n```\n\n> q\n\n| a |\n|---|\n| b |\n\nend **of** it\n"
	for cut := range len(text) {
		n := Stable(text[:cut])
		if n > cut {
			t.Fatalf("stable %d of %d", n, cut)
		}
		if n == 0 {
			continue
		}
		o := Options{Width: 30}
		head, tail := Render(strings.TrimRight(text[:n], "\n"), o), Render(text[n:], o)
		whole := Render(text, o)
		got := append(append(head, ""), tail...)
		if d := cmp.Diff(whole, got); d != "" {
			t.Errorf("cut %d, stable %d (%q): %s", cut, n, text[:n], d)
		}
	}
}

// FuzzRender checks that no text makes a line too wide, hides something, or takes long to render.
func FuzzRender(f *testing.F) {
	f.Add("# a\n- b\n  > c\n```go\nx\n```\n| a | b |\n|---|---|\n| 東 | **c** |", 20)
	f.Add(strings.Repeat("*a ", 500)+strings.Repeat("[", 500)+strings.Repeat("`", 300), 8)
	f.Add(strings.Repeat("> ", 300)+strings.Repeat("- ", 300), 10)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = 8 + (width&0xff)%200
		for _, l := range Render(text, Options{Width: width, Plain: true}) {
			if w := Width(l); w > width && w > 12*2+8 && len([]rune(l)) > 1 { // the marks of nested lists add columns
				t.Errorf("a line of %d columns in %d: %q", w, width, l)
			}
			for _, r := range l {
				if r < 0x20 || r == 0x7f || r >= 0x202a && r <= 0x202e {
					t.Errorf("hidden %q in %q", r, l)
				}
			}
		}
		if n := Stable(text); n < 0 || n > len(text) {
			t.Errorf("stable %d of %d", n, len(text))
		}
	})
}
