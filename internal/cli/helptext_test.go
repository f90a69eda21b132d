package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const helpText = `Reads questions, one a line, and answers each in the same session. It also
takes questions from a pipe.

  /tools      what the agent can call
  /resources  what a question can name as @SERVER:URI, which then goes

Examples:
  tenon chat -s -1   # one that is wider than the terminal is, with a comment
  printf 'Hello\nAnd in Paris?\n' | tenon chat --model demo

Flags:
      --a-very-long-name-of-a-flag VALUE   what it does
`

func TestFitHelp(t *testing.T) {
	for _, tc := range []struct {
		name  string
		width int
		want  string
	}{
		{"wide", 80, helpText},
		{"narrow", 44, `Reads questions, one a line, and answers
each in the same session. It also takes
questions from a pipe.

  /tools      what the agent can call
  /resources  what a question can name as
              @SERVER:URI, which then goes

Examples:
  tenon chat -s -1   # one that is wider than the terminal is, with a comment
  printf 'Hello\nAnd in Paris?\n' | tenon chat --model demo

Flags:
      --a-very-long-name-of-a-flag VALUE
        what it does
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, fitHelp(helpText, tc.width)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestManText checks that man(1) fills paragraphs and meanings, and leaves examples unchanged.
func TestManText(t *testing.T) {
	var b strings.Builder
	manText(&b, helpText)
	want := `.PP
Reads questions, one a line, and answers each in the same session. It also
takes questions from a pipe.
.TP
.B /tools
what the agent can call
.TP
.B /resources
what a question can name as @SERVER:URI, which then goes
.PP
Examples:
.PP
.nf
  tenon chat \-s \-1   # one that is wider than the terminal is, with a comment
  printf 'Hello\enAnd in Paris?\en' | tenon chat \-\-model demo
.fi
.PP
Flags:
.TP
.B \-\-a\-very\-long\-name\-of\-a\-flag VALUE
what it does
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}
