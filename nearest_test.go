package tenon_test

import (
	"testing"

	"github.com/tenonhq/tenon"
)

func TestNearest(t *testing.T) {
	for _, tt := range []struct {
		given string
		names []string
		want  string
	}{
		{"ad", []string{"a-b", "add", "ask"},
			"add"}, // equally similar: the longer common prefix wins
		{"lst", []string{"cost", "list"}, "list"},
		{"max_turn", []string{"min_turns", "max-turns"}, "max-turns"},
		{"sarvers", []string{"serve", "servers"}, "servers"},
		{"x", []string{"servers"}, ""},
		{"params", []string{"name", "parameters", "parallel"}, "parameters"}, // abbreviated
		{"para", []string{"parameters", "parallel"}, ""},
		{"", []string{"a"}, ""},
		{"add", nil, ""},
	} {
		if got := tenon.Nearest(tt.given, tt.names); got != tt.want {
			t.Errorf("of %q, %q is nearest to %q, want %q", tt.names, got, tt.given, tt.want)
		}
	}
}
