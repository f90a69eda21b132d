package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPriceAtLeast(t *testing.T) {
	n := func(f float64) *float64 { return &f }
	long := &LongPrice{Tokens: 200, Input: 4, Output: 20}
	for name, tt := range map[string]struct{ said, known, want Price }{
		"free":              {Price{}, Price{Input: 2, Output: 8}, Price{Input: 2, Output: 8}},
		"dearer":            {Price{Input: 3, Output: 9}, Price{Input: 2, Output: 8}, Price{Input: 3, Output: 9}},
		"of both":           {Price{Input: 3}, Price{Input: 2, Output: 8}, Price{Input: 3, Output: 8}},
		"the cache is free": {Price{Input: 2, CacheRead: n(0)}, Price{Input: 2}, Price{Input: 2, CacheRead: n(2)}},
		"a cheap cache":     {Price{Input: 2, CacheRead: n(0)}, Price{Input: 2, CacheRead: n(1)}, Price{Input: 2, CacheRead: n(1)}},
		"long prompts":      {Price{Input: 2, Output: 8}, Price{Input: 2, Output: 8, Above: long}, Price{Input: 2, Output: 8, Above: long}},
		"longer prompts": {Price{Input: 2, Output: 8, Above: &LongPrice{Tokens: 900, Input: 1, Output: 1}}, Price{Input: 2, Output: 8, Above: long},
			Price{Input: 2, Output: 8, Above: long}},
		"dearer long prompts": {Price{Above: long}, Price{Input: 2, Output: 8}, Price{Input: 2, Output: 8, Above: long}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.said.AtLeast(tt.known)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
