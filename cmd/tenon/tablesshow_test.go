package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestNarrow: the widest columns give way to the others; row ids stay whole.
func TestNarrow(t *testing.T) {
	a := &app{outTTY: true} // no terminal has a size: 100 characters
	long := strings.Repeat("x", 90)
	got := a.narrow([]string{"row", "name", "server", "description"}, [][]string{{"Row0", "add", long, long}, {"Row1", "a tool", "s", "d"}})
	want := [][]string{{"Row0", "add", strings.Repeat("x", 40) + "…", strings.Repeat("x", 40) + "…"}, {"Row1", "a tool", "s", "d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{long}}, a.narrow([]string{"row"}, [][]string{{long}})); diff != "" {
		t.Error(diff)
	}
}

// TestShowNodes: what a terminal shows of the kinds of steps has room in 80 characters.
func TestShowNodes(t *testing.T) {
	var out bytes.Buffer
	a := newApp(stdio{in: strings.NewReader(""), out: &out, err: &out})
	a.outTTY = true
	if err := a.showNodes(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if !strings.Contains(out.String(), "keys    sql params tables") {
		t.Errorf("no keys of sql: %s", out.String())
	}
}
