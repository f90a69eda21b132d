package tenon_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// TestParseChoice checks the written forms of a tool choice (MD-9).
func TestParseChoice(t *testing.T) {
	for _, c := range []struct {
		in     string
		want   tenon.Choice
		list   bool
		out    string
		pruned string // without b
	}{
		{"", tenon.Choice{Mode: "auto"}, false, "auto", "auto"},
		{"any", tenon.Choice{Mode: "any"}, false, "any", "any"},
		{"none", tenon.Choice{Mode: "none"}, false, "none", "none"},
		{"b", tenon.Choice{Mode: "any", Names: []string{"b"}}, false, "b", "auto"},
		{"a, b,a", tenon.Choice{Mode: "any", Names: []string{"a", "b"}}, true, "a,b", "a"},
		{"auto:b", tenon.Choice{Mode: "auto", Names: []string{"b"}}, true, "auto:b", "none"},
		{"auto:a,b", tenon.Choice{Mode: "auto", Names: []string{"a", "b"}}, true, "auto:a,b", "auto:a"},
		{",", tenon.Choice{Mode: "any", Names: []string{}}, true, "", "auto"},
	} {
		got := tenon.ParseChoice(c.in)
		if d := cmp.Diff(c.want, got); d != "" || got.IsList() != c.list || got.String() != c.out {
			t.Errorf("%q: %s list %t, %q", c.in, d, got.IsList(), got.String())
		}
		if p := got.Without([]string{"b"}).String(); p != c.pruned {
			t.Errorf("%q without b is %q, want %q", c.in, p, c.pruned)
		}
	}
}

// TestSamplingOver checks that each setting of a question overrides the agent's setting (MD-9).
func TestSamplingOver(t *testing.T) {
	one, two, n, yes := 1.0, 2.0, 5, true
	base := &tenon.Sampling{MaxTokens: 9, Temperature: &one, TopP: &one, Effort: "low", Stop: []string{"a"}, Voice: "v",
		Logprobs: &n, Store: &yes, Verbosity: "low", Serial: true}
	got := (&tenon.Sampling{Temperature: &two, Thinking: &n, Stop: []string{"b"}, Modalities: []string{"text"}}).Over(base)
	want := &tenon.Sampling{MaxTokens: 9, Temperature: &two, TopP: &one, Thinking: &n, Stop: []string{"b"}, Voice: "v",
		Logprobs: &n, Store: &yes, Verbosity: "low", Serial: true, Modalities: []string{"text"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var none *tenon.Sampling
	if none.Over(&tenon.Sampling{}) != nil || none.Over(base) != base || base.Over(nil) != base {
		t.Error("a side without settings changes the other")
	}
}
