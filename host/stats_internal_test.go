package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sealed"
	"github.com/tenonhq/tenon/view"
)

// TestStatsByIdentity checks that statistics count servers and tools by identity, and show them by name if the name is
// unique.
func TestStatsByIdentity(t *testing.T) {
	type call struct{ server, identity, name string }
	for _, tt := range []struct {
		name  string
		calls []call
		want  []string
	}{
		{"one server", []call{{"bank", "project:bank", "send"}, {"bank", "project:bank", "send"}}, []string{"bank 2"}},
		{"one of an earlier release", []call{{"bank", "project:bank", "send"}, {"bank", "", "send"}}, []string{"bank 2"}},
		{"a server that took the name", []call{{"bank", "project:bank", "send"}, {"bank", "target:sha256:0123456789", "send"}, {"bank", "target:sha256:0123456789", "send"}}, []string{"bank (01234567) 2", "bank (project) 1"}},
		{"two layers and an earlier release", []call{{"bank", "project:bank", "send"}, {"bank", "user:bank", "send"}, {"bank", "", "send"}}, []string{"bank 1", "bank (project) 1", "bank (user) 1"}},
		{"one target under two names", []call{{"h-123456", "target:sha256:12", "send"}, {"h", "target:sha256:12", "send"}}, []string{"h-123456 2"}},
		{"an exposed name that moved", []call{{"bank", "project:bank", "bank_send"}, {"bank", "project:bank", "send"}}, []string{"bank 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, by := range []string{StatsTools, StatsServers} {
				c := counter{by: by, stats: map[statKey]*Stat{}}
				for i, one := range tt.calls {
					d := agent.Decision{Verdict: tenon.Deny, Server: one.server, Identity: one.identity, Remote: "send"}
					t := view.TallyOf(tenon.Run{ID: fmt.Sprint("run_", i)}, []tenon.Event{
						{Step: "1.0", Kind: agent.EventProposed, Data: json.RawMessage(`{"name":"` + one.name + `"}`)}, {Step: "1.0", Kind: agent.EventDecided, Data: encode(d)}})
					c.run(&t)
				}
				var got []string
				for _, s := range c.list() {
					server := s.Server
					if by == StatsServers {
						server = s.Name
					}
					got = append(got, fmt.Sprint(server, " ", s.Calls))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("by %s: -want +got:\n%s", by, diff)
				}
			}
		})
	}
}

// TestStatsOfCaches: MD-8, statistics of models have the tokens of caches and what they saved.
func TestStatsOfCaches(t *testing.T) {
	read, write := 0.3, 3.75
	prices := map[string]model.Price{"sonnet": {Input: 3, Output: 15, CacheRead: &read, CacheWrite: &write}}
	c := counter{by: StatsModels, stats: map[statKey]*Stat{}, price: func(name string) model.Price { return prices[name] }}
	for _, m := range []view.Tally{
		{Model: "sonnet", Models: view.ModelTally{Calls: 2, Input: 3_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000}},
		{Model: "sonnet", Models: view.ModelTally{Calls: 1, Input: 1_000_000, CacheRead: 1_000_000}},
		{Model: "unknown", Models: view.ModelTally{Calls: 1, Input: 10, CacheRead: 5}},
		{Model: "sonnet", Models: view.ModelTally{Calls: 1, Input: 10}},
	} {
		c.run(&m)
	}
	got := map[string]string{}
	for _, s := range c.list() {
		got[s.Name] = fmt.Sprint(s.Input, " ", s.CacheRead, " ", s.CacheWrite, " ", s.Saved)
	}
	want := map[string]string{"sonnet": "4000010 2000000 1000000 $4.65", "unknown": "10 5 0 $0.00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// manyTallies is a store with many summaries. It uses its buffer again for each.
type manyTallies struct {
	store.Store
	n int
}

func (m manyTallies) Tallies(_ context.Context, each func(store.Tally) error) error {
	var b []byte
	for i := range m.n {
		b = fmt.Appendf(b[:0], "%*d", 8+i%1000, i)
		if err := each(store.Tally{Run: fmt.Sprint("run_", i), Data: b}); err != nil {
			return err
		}
	}
	return nil
}

// TestEachTally: RP-26, summaries that are counted while others are read arrive whole, once and in order.
func TestEachTally(t *testing.T) {
	for _, n := range []int{0, 1, 3000} {
		h := &Host{store: sealed.New(manyTallies{n: n}, nil, nil)}
		next := 0
		err := h.eachTally(t.Context(), map[string]bool{"run_1": true}, func(data []byte) {
			if next == 1 {
				next++ // skipped
			}
			if got := strings.TrimSpace(string(data)); got != fmt.Sprint(next) {
				t.Errorf("summary %d is %s", next, got)
			}
			next++
		})
		if err != nil || next != n {
			t.Errorf("%d of %d summaries, %v", next, n, err)
		}
	}
}
