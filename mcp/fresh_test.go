package mcp

import (
	"testing"
	"time"
)

func TestFreshness(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pages []string
		want  time.Duration
	}{
		{"RP-11_none", nil, 0},
		{"RP-11_one", []string{"1500"}, 1500 * time.Millisecond},
		{"RP-11_the_shortest_of_all_pages", []string{"60000", "2000", "3000"}, 2 * time.Second},
		{"RP-11_zero", []string{"0"}, 1},
		{"RP-11_negative", []string{"-5"}, 1},
		{"RP-11_one_of_zero", []string{"2000", "0", "3000"}, 1},
		{"RP-11_a_fraction", []string{"0.5"}, 500 * time.Microsecond},
		{"RP-11_no_number", []string{`"soon"`, "null", "{}", "NaN"}, 0},
		{"RP-11_too_long", []string{"1e300"}, 24 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f freshness
			for _, p := range tt.pages {
				f.page([]byte(p))
			}
			if time.Duration(f) != tt.want {
				t.Errorf("%s, want %s", time.Duration(f), tt.want)
			}
		})
	}
}
