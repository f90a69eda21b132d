package host

import (
	"cmp"
	"context"
	"slices"

	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/store"
)

// ToolStat counts the calls of one tool.
type ToolStat struct {
	Name    string `json:"name"` // as the model last saw it
	Server  string `json:"server"`
	Remote  string `json:"remote_name"`
	Calls   int    `json:"calls"`
	Errors  int    `json:"errors"` // of those that ran
	Denied  int    `json:"denied"`
	Cached  int    `json:"cached"` // answered with the result of an equal call
	Unknown int    `json:"unknown"`
	P50     int64  `json:"p50_ms"`
	P95     int64  `json:"p95_ms"`
}

// ToolStats folds all journals into counts by tool, the most used first.
func (h *Host) ToolStats(ctx context.Context) ([]ToolStat, error) {
	type key struct{ server, remote, name string }
	stats := map[key]*ToolStat{}
	took := map[key][]int64{}
	for before := ""; ; {
		runs, err := h.store.Runs(ctx, store.RunFilter{Before: before, Limit: 500})
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			if r.Imported != nil {
				continue // its calls were not made here
			}
			events, err := h.store.Events(ctx, r.ID, 0, 0)
			if err != nil {
				return nil, err
			}
			for _, c := range agent.Calls(events) {
				k := key{c.Server, c.Remote, ""}
				if c.Server == "" {
					k.name = c.Name // a tool that there was not
				}
				s := stats[k]
				if s == nil {
					s = &ToolStat{Name: c.Name, Server: c.Server, Remote: c.Remote}
					stats[k] = s
				}
				s.add(c)
				if c.Outcome == agent.CallDone && !c.Cached {
					took[k] = append(took[k], c.Millis)
				}
			}
		}
		before = runs[len(runs)-1].ID
	}
	list := make([]ToolStat, 0, len(stats))
	for k, s := range stats {
		slices.Sort(took[k])
		s.P50, s.P95 = percentile(took[k], 50), percentile(took[k], 95)
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b ToolStat) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Server, b.Server))
	})
	return list, nil
}

func (s *ToolStat) add(c agent.CallRecord) {
	s.Calls++
	if c.Cached {
		s.Cached++
	}
	switch c.Outcome {
	case agent.CallDenied:
		s.Denied++
	case agent.CallUnknown:
		s.Unknown++
	case agent.CallFailed, agent.CallInvalid:
		s.Errors++
	case agent.CallDone:
		if !c.Success {
			s.Errors++
		}
	}
}

// percentile is the value below which p percent of the sorted values lie.
func percentile(sorted []int64, p int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
