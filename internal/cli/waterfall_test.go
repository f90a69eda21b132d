package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

func TestWaterfall(t *testing.T) {
	const weekend = 60 * 60 * 60 * 1000
	span := func(start, ms int64) view.Span { return view.Span{Start: start, Millis: ms} }
	wait := func(start, ms int64) view.Span { return view.Span{Start: start, Millis: ms, Wait: true} }
	tests := map[string]struct {
		steps [][]view.Span
		want  []string
	}{
		"nothing":             {[][]view.Span{nil}, []string{"          "}},
		"one":                 {[][]view.Span{{span(0, 50)}}, []string{"##########"}},
		"no time at all":      {[][]view.Span{{span(0, 0)}}, []string{"|         "}},
		"one after the other": {[][]view.Span{{span(0, 50)}, {span(50, 50)}}, []string{"#####     ", "     #####"}},
		"at the same time":    {[][]view.Span{{span(0, 100)}, {span(20, 50)}}, []string{"##########", "  #####   "}},
		"too short":           {[][]view.Span{{span(0, 1000)}, {span(1000, 1)}}, []string{"######### ", "         #"}},
		"a weekend":           {[][]view.Span{{span(0, 50)}, {wait(50, weekend), span(50+weekend, 50)}}, []string{"####      ", "    .#####"}},
		"still waiting":       {[][]view.Span{{span(0, 90)}, {wait(90, weekend)}}, []string{"######### ", "         ."}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var steps []view.Step
			for _, spans := range tt.steps {
				steps = append(steps, view.Step{Spans: spans})
			}
			w := newWaterfall(steps, 10, false)
			for i, s := range steps {
				if got := w.bar(s); got != tt.want[i] {
					t.Errorf("bar %d is %q, want %q", i, got, tt.want[i])
				}
			}
		})
	}
}

// TestStepLinesFit checks that lines fit on the terminal, whatever text is in them, and contain no control characters.
func TestStepLinesFit(t *testing.T) {
	var out bytes.Buffer
	a := newApp(stdio{strings.NewReader(""), &out, &out})
	a.lookupEnv = func(string) (string, bool) { return "", false }
	long := strings.Repeat("wörd\x1b[2J ", 50)
	var steps []view.Step
	for _, kind := range []string{agent.CommandModel, agent.CommandTool, view.StepMessage, agent.CommandCompact} {
		for _, name := range []string{"", "t.add", long} {
			for _, text := range []string{"", long} {
				steps = append(steps, view.Step{Step: "12.3", Kind: kind, Name: name, Outcome: "failed", Error: text, By: "somebody", Attempts: 3,
					Millis: 123456, Usage: &tenon.Usage{Input: 1234567, Output: 12345}, Spans: []view.Span{{Millis: 123456}}})
			}
		}
	}
	var b strings.Builder
	a.steps(&b, steps, []view.Call{{Step: "12.3", Args: []byte(`{"a":"` + long + `"}`)}}, true)
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) >= a.width() || strings.Contains(line, "\x1b") {
			t.Errorf("a line of %d characters: %q", utf8.RuneCountInString(line), line)
		}
	}
}
