package host

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/store"
)

// The values of [StatsQuery.By].
const (
	StatsTools      = "tools"
	StatsServers    = "servers"
	StatsModels     = "models"
	StatsAgents     = "agents"
	StatsSessions   = "sessions"
	StatsPrincipals = "principals"
	StatsDays       = "days" // UTC
)

// StatsBy returns what can be counted by.
func StatsBy() []string {
	return []string{StatsTools, StatsServers, StatsModels, StatsAgents, StatsSessions, StatsPrincipals, StatsDays}
}

// The values of [StatsQuery.Per].
const (
	PerHour = "hour"
	PerDay  = "day" // UTC
)

// StatsQuery says what is counted.
type StatsQuery struct {
	By        string          // one of [StatsBy]
	Per       string          // counts apart what began in each hour or day: [PerHour], [PerDay]; empty: all as one
	Since     time.Time       // only runs that began then or later; zero: all
	Principal tenon.Principal // only of this one; empty: of everybody
}

// Stat counts what was done with one tool, server, model, agent, session or principal,
// or on one day. Calls are tool calls, by model those of the model. Latencies are those
// of the calls; where calls of both kinds are counted, of whole runs.
type Stat struct {
	Name string `json:"name"` // a tool's as the model last saw it
	// At is the beginning of the hour or day in which the counted runs began, where
	// these are counted apart.
	At      time.Time `json:"at,omitzero"`
	Server  string    `json:"server,omitempty"`
	Remote  string    `json:"remote_name,omitempty"`
	Title   string    `json:"title,omitempty"` // of a session
	Runs    int       `json:"runs,omitempty"`
	Models  int       `json:"model_calls,omitempty"`
	Calls   int       `json:"calls"`
	Errors  int       `json:"errors"` // of those that ran
	Denied  int       `json:"denied"`
	Cached  int       `json:"cached"` // answered with the result of an equal call
	Unknown int       `json:"unknown"`
	P50     int64     `json:"p50_ms"`
	P95     int64     `json:"p95_ms"`
	P99     int64     `json:"p99_ms"`
	Bytes   int64     `json:"bytes"` // of results
	Input   int       `json:"input_tokens"`
	Output  int       `json:"output_tokens"`
	// Cost is what model calls and tools came to, in dollars, as far as prices are known.
	Cost tenon.USD `json:"cost"`

	took []int64
}

// Stats folds journals into counts, the most used first; days, and what is counted per
// hour or day, in the order of time. Errors: invalid (By, Per), store.
func (h *Host) Stats(ctx context.Context, q StatsQuery) ([]Stat, error) {
	if !slices.Contains(StatsBy(), q.By) {
		return nil, tenon.Errorf(tenon.CodeInvalid, "nothing is counted by '%s'; values: %s", q.By, strings.Join(StatsBy(), ", "))
	}
	if q.Per != "" && q.Per != PerHour && q.Per != PerDay {
		return nil, tenon.Errorf(tenon.CodeInvalid, "nothing is counted per '%s'; values: %s, %s", q.Per, PerHour, PerDay)
	}
	c := counter{by: q.By, per: q.Per, stats: map[statKey]*Stat{}}
	f := store.RunFilter{Principal: q.Principal, Limit: 500}
	for {
		runs, err := h.store.Runs(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if r.Imported != nil {
				continue // its calls were not made here
			}
			if r.Created.Before(q.Since) && r.Caller == "" {
				return c.list(), nil // the others are older
			}
			events, err := h.store.Events(ctx, r.ID, 0, 0)
			if err != nil {
				return nil, err
			}
			c.run(r, events)
		}
		if len(runs) < f.Limit {
			return c.list(), nil
		}
		f.Before = runs[len(runs)-1].ID
	}
}

// counter gathers the counts of one kind of thing.
type counter struct {
	by    string
	per   string
	now   time.Time // the beginning of the hour or day of the run that is counted
	stats map[statKey]*Stat
}

// statKey identifies what is counted.
type statKey struct {
	name, server, remote string
	at                   time.Time
}

func (c *counter) at(k statKey) *Stat {
	k.at = c.now
	s := c.stats[k]
	if s == nil {
		s = &Stat{Name: k.name, At: k.at, Server: k.server, Remote: k.remote}
		c.stats[k] = s
	}
	return s
}

// run counts one run.
func (c *counter) run(r tenon.Run, events []tenon.Event) {
	switch c.per {
	case PerHour:
		c.now = r.Created.UTC().Truncate(time.Hour)
	case PerDay:
		c.now = r.Created.UTC().Truncate(24 * time.Hour)
	}
	var whole *Stat
	switch c.by {
	case StatsAgents:
		if r.Agent != "" { // a person's own call has none
			whole = c.at(statKey{name: r.Agent})
		}
	case StatsSessions:
		if r.Session != "" {
			whole = c.at(statKey{name: r.Session})
			whole.Title = r.Title // of the oldest run, which comes last
		}
	case StatsPrincipals:
		whole = c.at(statKey{name: string(principalOf(r))})
	case StatsDays:
		whole = c.at(statKey{name: r.Created.UTC().Format(time.DateOnly)})
	}
	if whole != nil {
		if whole.Runs++; r.State.Ended() {
			whole.took = append(whole.took, r.Updated.Sub(r.Created).Milliseconds())
		}
	}
	for _, call := range agent.Calls(events) {
		s := whole
		switch c.by {
		case StatsTools:
			s = c.at(statKey{name: noServer(call), server: call.Server, remote: call.Remote})
			s.Title = cmp.Or(s.Title, call.Name) // runs come newest first
		case StatsServers:
			if call.Server != "" {
				s = c.at(statKey{name: call.Server})
			}
		}
		if s != nil {
			s.add(call, whole == nil)
		}
	}
	c.models(r, events, whole)
}

// noServer is the name of a tool that there was not: nothing else identifies it.
func noServer(call agent.CallRecord) string {
	if call.Server == "" {
		return call.Name
	}
	return ""
}

// models counts the model calls of a run.
func (c *counter) models(r tenon.Run, events []tenon.Event, whole *Stat) {
	started := map[string]time.Time{}
	for _, e := range events {
		if e.Kind == tenon.EventStarted {
			started[e.Step] = e.Time
		}
		failed := e.Kind == agent.EventFailed && !strings.Contains(e.Step, ".")
		if e.Kind != agent.EventModel && e.Kind != agent.EventCompacted && !failed {
			continue
		}
		s := whole
		if c.by == StatsModels {
			s = c.at(statKey{name: r.Model})
			if s.Calls++; failed {
				s.Errors++
			} else if t, ok := started[e.Step]; ok {
				s.took = append(s.took, e.Time.Sub(t).Milliseconds())
			}
		}
		var spent struct { // of a Response and of a Compacted
			Usage *tenon.Usage `json:"usage"`
			Cost  *tenon.USD   `json:"cost"`
		}
		if s == nil || json.Unmarshal(e.Data, &spent) != nil {
			continue
		}
		if whole != nil {
			whole.Models++
		}
		if spent.Usage != nil {
			s.Input += spent.Usage.Input
			s.Output += spent.Usage.Output
		}
		if spent.Cost != nil {
			s.Cost += *spent.Cost
		}
	}
}

// add counts a tool call, and how long it took where that is wanted.
func (s *Stat) add(c agent.CallRecord, timed bool) {
	s.Calls++
	s.Cost += c.Cost
	if c.Cached {
		s.Cached++
	}
	if c.Result != nil {
		s.Bytes += int64(len(encode(c.Result)))
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
		if timed && !c.Cached {
			s.took = append(s.took, c.Millis)
		}
	}
}

// list is the end of counting.
func (c *counter) list() []Stat {
	list := make([]Stat, 0, len(c.stats))
	for _, s := range c.stats {
		slices.Sort(s.took)
		s.P50, s.P95, s.P99 = percentile(s.took, 50), percentile(s.took, 95), percentile(s.took, 99)
		s.took = nil
		if c.by == StatsTools {
			s.Name, s.Title = cmp.Or(s.Title, s.Name), ""
		}
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Stat) int {
		if c.by == StatsDays {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(b.Calls, a.Calls), cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Server, b.Server))
	})
	return list
}

// percentile is the value below which p percent of the sorted values lie.
func percentile(sorted []int64, p int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
