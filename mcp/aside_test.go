package mcp

import (
	"context"
	"testing"
)

// TestWhoseQuestion checks to which open request of a stream a question belongs. A request that is no call of a tool,
// and may be of another client, never gets the question of a call.
func TestWhoseQuestion(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	call := func() *openCall { return &openCall{ctx: t.Context()} }
	aside := func() *openCall { return &openCall{ctx: t.Context(), aside: true} }
	for name, tt := range map[string]struct {
		open map[int64]*openCall
		via  int64
		want int64 // 0: none
	}{
		"nothing":                      {nil, 0, 0},
		"a call":                       {map[int64]*openCall{1: call()}, 0, 1},
		"the newest call":              {map[int64]*openCall{1: call(), 2: call()}, 0, 2},
		"a read alone":                 {map[int64]*openCall{1: aside()}, 0, 1},
		"a later read":                 {map[int64]*openCall{1: call(), 2: aside()}, 0, 1},
		"an earlier read":              {map[int64]*openCall{1: aside(), 2: call()}, 0, 2},
		"a later read on its stream":   {map[int64]*openCall{1: call(), 2: aside()}, 2, 2},
		"two reads":                    {map[int64]*openCall{1: aside(), 2: aside()}, 0, 0},
		"a read after a call that was": {map[int64]*openCall{1: {ctx: ended}, 2: aside()}, 0, 2},
		"a read that was":              {map[int64]*openCall{1: {ctx: ended, aside: true}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := openCalls{byID: tt.open}
			if got := o.find(tt.via); got != tt.open[tt.want] {
				t.Errorf("%p, want %p of %v", got, tt.open[tt.want], tt.open)
			}
		})
	}
}
