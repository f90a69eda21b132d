package cast

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/pty"
)

// session makes a recording of outputs, one second apart.
func session(outputs ...string) *Recording {
	r := &Recording{Title: "a <b>", Columns: 40, Rows: 4}
	term := pty.NewTerminal(r.Columns, r.Rows)
	for i, output := range outputs {
		_, _ = term.Write([]byte(output))
		r.Frames = append(r.Frames, frame(term, time.Duration(i)*time.Second))
	}
	r.End = time.Duration(len(outputs)) * time.Second
	return r
}

var outputs = []string{"$ ", "ls", "\r\n\x1b[1;32ma\x1b[0m & \x1b[7mb\x1b[m 東\r\n$ ", "\x1b[?25l\x1b[?1049hall", "\x1b[?1049l\x1b[?25h"}

// TestCast reads what it has written.
func TestCast(t *testing.T) {
	r := session(outputs...)
	text := r.Cast()
	again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, again); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(string(text), string(again.Cast())); d != "" {
		t.Errorf("written again: %s", d)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if want := `{"version":2,"width":40,"height":4,"title":"a <b>","env":{"SHELL":"bash","TERM":"xterm-256color"}}`; first != want {
		t.Errorf("the first line is %s", first)
	}
}

func TestDifference(t *testing.T) {
	base := session("$ ", "● add {} 12ms ok\r\nses_06h26d57cxhshcm910q2\r\n  +<1ms  ██ x")
	for name, c := range map[string]struct {
		other *Recording
		same  bool
	}{
		"ids and durations": {session("$ ", "● add {} <1ms ok\r\nses_06h26d57cxhshcm910qz\r\n   +2.5s ░█ x"), true},
		"a word":            {session("$ ", "● sub {} 12ms ok\r\nses_06h26d57cxhshcm910q2\r\n  +<1ms  ██ x"), false},
		"a colour":          {session("$ ", "● add {} \x1b[31m12ms ok\x1b[m\r\nses_06h26d57cxhshcm910q2\r\n  +<1ms  ██ x"), false},
		"a frame less":      {session("$ "), false},
	} {
		t.Run(name, func(t *testing.T) {
			if d := base.Difference(c.other); (d == "") != c.same {
				t.Errorf("the difference is %q", d)
			}
		})
	}
}

// TestSVG checks that the picture is well-formed, and that it has each line once and the last frame without animation.
func TestSVG(t *testing.T) {
	svg := string(session(outputs...).SVG())
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for want, times := range map[string]int{
		`aria-label="a &lt;b&gt;"`:                                1,
		`fill="#7ee787" font-weight="bold">a</text>`:              1,
		`textLength="33.6">$ ls</text>`:                           1,
		`prefers-reduced-motion:reduce`:                           1,
		`<rect x="33.6" width="8.4" height="19" fill="#e6edf3"/>`: 1, // what is reversed
		"20.000%{visibility:visible}":                             1,
	} {
		if n := strings.Count(svg, want); n < times {
			t.Errorf("%s is %d times in\n%s", want, n, svg)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(session(outputs...).Cast())
	f.Add([]byte(`{"version":2,"width":0,"height":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := Parse(text); err == nil {
			_ = r.SVG()
			_ = r.Cast()
		}
	})
}
